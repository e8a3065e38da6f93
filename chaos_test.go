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

// TestChaos plays random faults against clients that fight for one lock, in
// virtual time, and checks what is promised: two never believe at one time, fences
// grow from holder to holder, and when the faults are over everybody gets the
// lock and nothing is left behind. A run is repeated with ZAMOK_SEED.
func TestChaos(t *testing.T) {
	seeds := make([]uint64, 25)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if v := os.Getenv("ZAMOK_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
				newChaos(t, s, seed).play()
			})
		})
	}
}

type chaos struct {
	t *testing.T
	s *zamoktest.Server

	mu     sync.Mutex
	rng    *rand.Rand
	calm   bool
	holder *zamok.Lease // the last to believe
	gone   bool         // it has called Release
	fence  int64
	holds  int
}

func newChaos(t *testing.T, s *zamoktest.Server, seed uint64) *chaos {
	c := &chaos{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 1))}
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
		switch c.n(6) {
		case 0:
			c.s.Hang()
			pass(long)
			c.s.Unhang()
		case 1:
			c.s.Down(nil)
			pass(long)
			c.s.Up()
		case 2:
			c.s.Break()
			pass(long)
			c.s.Reconnect()
		case 3:
			c.s.Restart()
		}
	}
}

// believes notes that somebody has the lock, and checks that nobody else does.
func (c *chaos) believes(l *zamok.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder != nil && !c.gone && time.Now().Before(c.holder.Deadline()) {
		c.t.Errorf("two believe: fence %d until %v, and now fence %d", c.holder.Fence(), c.holder.Deadline(), l.Fence())
	}
	if l.Fence() <= c.fence {
		c.t.Errorf("fence %d after %d", l.Fence(), c.fence)
	}
	c.holder, c.gone, c.fence = l, false, l.Fence()
	c.holds++
}

func (c *chaos) leaves(l *zamok.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder == l {
		c.gone = true
	}
}

// worker locks, works, and releases or dies, until ctx ends.
func (c *chaos) worker(ctx context.Context) {
	m := c.s.Client().Mutex("job", nil)
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, time.Duration(100+c.n(20000))*time.Millisecond)
		var l *zamok.Lease
		var err error
		if c.n(4) == 0 {
			l, err = m.TryLock(limit)
		} else {
			l, err = m.Lock(limit)
		}
		if err != nil {
			cancel()
			pass(time.Duration(c.n(300)) * time.Millisecond)
			continue
		}
		c.believes(l)
		select {
		case <-time.After(time.Duration(c.n(6000)) * time.Millisecond):
		case <-l.Context().Done():
		}
		if c.n(10) > 0 { // else it forgets to
			c.leaves(l)
			_ = l.Release(limit)
		}
		cancel()
	}
}

func (c *chaos) play() {
	ctx, stop := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { c.nemesis(ctx) })
	for range 6 {
		wg.Go(func() { c.worker(ctx) })
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
			c.believes(l)
			c.leaves(l)
			release(c.t, l)
		})
	}
	wg.Wait()
	if took := time.Since(start); took > 10*time.Second {
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
