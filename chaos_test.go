package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestChaos plays random faults against clients that fight for one lock, without
// readers and with, and with a server that loses its data now and then, in virtual time, and checks what is promised: two never believe at one time, fences
// grow from holder to holder, and when the faults are over everybody gets the
// lock and nothing is left behind. A run is repeated with ZAMOK_SEED.
func TestChaos(t *testing.T) {
	for _, seed := range chaosSeeds(t, 25) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
				c := newChaos(t, s, seed)
				c.play(c.worker)
			})
			bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
				c := newChaos(t, s, seed)
				c.readers = true
				c.play(c.worker)
			})
			bubble(t, &zamok.Config{TTL: 3 * time.Second, Quarantine: chaosQuarantine}, func(t *testing.T, s *zamoktest.Server) {
				c := newChaos(t, s, seed)
				c.readers, c.loses = true, true
				c.play(c.worker)
			})
		})
	}
}

const chaosQuarantine = 4 * time.Second

// chaosSeeds are n at random, or the one that is asked for.
func chaosSeeds(t *testing.T, n int) []uint64 {
	if v := os.Getenv("ZAMOK_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	return seeds
}

type chaos struct {
	t *testing.T
	s *zamoktest.Server

	mu        sync.Mutex
	rng       *rand.Rand
	broken    func(format string, args ...any) // what is done about a promise that is
	readers   bool                             // there are some
	loses     bool                             // the server loses its data, and clients have a quarantine
	calm      bool
	apart     bool                  // the clocks of a quorum's members are
	fresh     bool                  // a member of one that lost its data is taken for a new one
	believers map[*zamok.Lease]bool // who believes and has not called Release; true: as a reader
	fence     int64                 // the largest of all, and of a writer
	written   int64
	holds     int
}

func newChaos(t *testing.T, s *zamoktest.Server, seed uint64) *chaos {
	c := &chaos{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 1)), broken: t.Errorf, believers: make(map[*zamok.Lease]bool)}
	s.Latency(time.Millisecond)
	s.Intercept(c.fault)
	s.InterceptMessage(c.messageFault)
	return c
}

func (c *chaos) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// fault loses or delays one call in ten, by no more than abandons are repeated.
func (c *chaos) fault(driver.Call) memory.Fault {
	delay := time.Duration(c.n(1500)) * time.Millisecond
	switch kind := c.n(40); {
	case c.isCalm():
	case kind == 0:
		return memory.Fault{DropRequest: true}
	case kind == 1:
		return memory.Fault{DropReply: true}
	case kind == 2:
		return memory.Fault{Delay: delay}
	case kind == 3:
		return memory.Fault{DelayReply: delay}
	case kind == 4:
		return memory.Fault{Err: errors.New("reset"), DropReply: delay > time.Second}
	}
	return memory.Fault{}
}

func (c *chaos) messageFault(string, string) memory.MessageFault {
	delay := time.Duration(c.n(2500)) * time.Millisecond
	switch kind := c.n(10); {
	case c.isCalm():
	case kind == 0:
		return memory.MessageFault{Drop: true}
	case kind == 1:
		return memory.MessageFault{Delay: delay}
	}
	return memory.MessageFault{}
}

func (c *chaos) isCalm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calm
}

// nemesis breaks the whole server now and then.
func (c *chaos) nemesis(ctx context.Context) {
	for ctx.Err() == nil {
		pass(time.Duration(c.n(4000)) * time.Millisecond)
		long := time.Duration(c.n(5000)) * time.Millisecond
		switch n := c.n(6); {
		case n == 0:
			c.s.Hang()
			pass(long)
			c.s.Unhang()
		case n == 1:
			c.s.Down(nil)
			pass(long)
			c.s.Up()
		case n == 2:
			c.s.Break()
			pass(long)
			c.s.Reconnect()
		case n == 3:
			c.s.Restart()
		case c.loses:
			c.lose()
		}
	}
}

// lose has the server lose all its data, or what came last.
func (c *chaos) lose() {
	switch c.n(3) {
	case 0:
		c.s.Wipe()
	case 1:
		c.s.Wipe()
		c.s.Restart()
	default: // it comes back with what it had before the last grant
		c.s.Del("lock:job", "zamok:readers:{lock:job}")
		c.s.Restart()
	}
}

// believes notes that somebody has the lock, and checks that nobody else does, or
// that all who do are readers.
func (c *chaos) believes(l *zamok.Lease, reads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, alsoReads := range c.believers {
		switch {
		case !time.Now().Before(other.Deadline()):
			delete(c.believers, other)
		case !reads || !alsoReads:
			c.broken("two believe: fence %d until %v, and now fence %d", other.Fence(), other.Deadline(), l.Fence())
		}
	}
	before := c.fence
	if reads {
		before = c.written // readers who are let in together are heard in any order
	}
	if l.Fence() <= before {
		c.broken("fence %d after %d", l.Fence(), before)
	}
	c.believers[l] = reads
	c.fence = max(c.fence, l.Fence())
	if !reads {
		c.written = l.Fence()
	}
	c.holds++
}

// turns notes that a writer is about to become a reader.
func (c *chaos) turns(l *zamok.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.believers[l] = true
}

func (c *chaos) leaves(l *zamok.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.believers, l)
}

// worker locks, works, and releases or dies, until ctx ends.
func (c *chaos) worker(ctx context.Context) {
	rw := c.s.Client().RWMutex("job", nil)
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, time.Duration(100+c.n(20000))*time.Millisecond)
		reads, take := c.readers && c.n(3) > 0, rw.Lock
		switch try := c.n(4) == 0; {
		case reads && try:
			take = rw.TryRLock
		case reads:
			take = rw.RLock
		case try:
			take = rw.TryLock
		}
		l, err := take(limit)
		if err != nil {
			cancel()
			pass(time.Duration(c.n(300)) * time.Millisecond)
			continue
		}
		c.believes(l, reads)
		c.work(l)
		if c.readers && !reads && c.n(3) == 0 {
			c.turns(l)
			_ = l.Downgrade(limit)
			c.work(l)
		}
		if c.n(10) > 0 { // else it forgets to
			c.leaves(l)
			_ = l.Release(limit)
		}
		cancel()
	}
}

func (c *chaos) work(l *zamok.Lease) {
	select {
	case <-time.After(time.Duration(c.n(6000)) * time.Millisecond):
	case <-l.Context().Done():
	}
}

// play has six workers at it, and the nemesis.
func (c *chaos) play(worker func(ctx context.Context)) {
	ctx, stop := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { c.nemesis(ctx) })
	for range 6 {
		wg.Go(func() { worker(ctx) })
	}
	wg.Wait()
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	c.heals()
	if c.holds < 20 {
		c.t.Errorf("only %d holds: this tried nothing", c.holds)
	}
}

// heals checks that all is well soon after the last fault.
func (c *chaos) heals() {
	start := time.Now()
	var wg sync.WaitGroup
	for range 4 {
		m := c.s.Client().Mutex("job", nil)
		wg.Go(func() {
			l := lock(c.t, m)
			c.believes(l, false)
			c.leaves(l)
			release(c.t, l)
		})
	}
	wg.Wait()
	if took := time.Since(start); took > 10*time.Second+chaosQuarantine {
		c.t.Errorf("after the last fault it took %v", took)
	}
	pass(20 * time.Second)
	synctest.Wait()
	for _, key := range c.s.Keys() {
		if key == "lock:job" || key == "zamok:queue:{lock:job}" {
			c.t.Errorf("%s is left", key)
		}
	}
}
