package scene

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

func kind(t *testing.T, name string) locker.Kind {
	t.Helper()
	kinds, err := locker.Find([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// What a lock costs is told apart from what goes on beside it.
func TestWorkIsWhatLocksCost(t *testing.T) {
	u := usage{counts: drivertest.Counts{
		"evalsha": 205, "set": 105, "time": 105, "zadd": 5, "zremrangebyscore": 5, "pttl": 5, "pexpire": 5, "del": 100, // five of presence
		"ping": 7, "info": 1, "hello": 3, "client|setinfo": 6, "script|load": 2, "zcard": 9,
	}}
	commands, requests, presence, pings := u.work(kind(t, "zamok/goredis"))
	if commands != 500 || requests != 200 || presence != 5 || pings != 7 {
		t.Errorf("zamok: %v commands, %v requests, %v presence, %v pings", commands, requests, presence, pings)
	}
	u.counts = drivertest.Counts{"set": 100, "evalsha": 100, "get": 100, "del": 100}
	if commands, requests, _, _ := u.work(kind(t, "redsync/goredis")); commands != 400 || requests != 200 {
		t.Errorf("redsync: %v commands, %v requests", commands, requests)
	}
	before := usage{cpu: time.Second, counts: drivertest.Counts{"set": 60}}
	after := usage{cpu: 3 * time.Second, counts: drivertest.Counts{"set": 100, "get": 1}}
	if d := after.since(before); d.cpu != 2*time.Second || d.counts["set"] != 40 || d.counts["get"] != 1 {
		t.Errorf("since: %+v", d)
	}
	if d := infoSeconds("# CPU\r\nused_cpu_sys:1.500000\r\nused_cpu_user:2\r\n", "used_cpu_sys:"); d != 1500*time.Millisecond {
		t.Errorf("INFO: %v", d)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		taken []int
		want  float64
	}{{[]int{5, 5, 5, 5}, 1}, {[]int{20, 0, 0, 0}, 0.25}, {[]int{0, 0}, 0}, {[]int{1, 3}, 0.8}} {
		if got := (tally{taken: c.taken}).jain(); got != c.want {
			t.Errorf("%v: %v, want %v", c.taken, got, c.want)
		}
	}
}

// local is a lock that takes turns within a process, for a crowd of which is known what
// it must see.
type local chan struct{}

func (l local) take(ctx context.Context) (locker.Held, error) {
	select {
	case l <- struct{}{}:
		return localHeld{l}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type localHeld struct{ l local }

func (h localHeld) Release(context.Context) error { <-h.l; return nil }
func (localHeld) Lost() <-chan struct{}           { return nil }
func (localHeld) Fence() int64                    { return 0 }

// some are n who want it, and whom the others wait for.
func some(n int, take locker.Take) []locker.Take { return slices.Repeat([]locker.Take{take}, n) }

func TestACrowdCounts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lock := make(local, 1)
	turns := 0
	c := newCrowd(some(3, func(ctx context.Context) (locker.Held, error) {
		h, err := lock.take(ctx)
		if err == nil {
			if turns++; turns == 30 { // the lock guards it
				cancel()
			}
		}
		return h, err
	}), 0, 1)
	if err := c.play(ctx); err != nil {
		t.Fatal(err)
	}
	got := c.end()
	if n := got.acquired(); n < 30 || len(got.passes) > n || len(got.waits) < n {
		t.Errorf("%d acquisitions, %d passes, %d waits", n, len(got.passes), len(got.waits))
	}
	c.reset()
	if got := c.end(); got.acquired() != 0 || len(got.passes) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
}

func TestACrowdSeesWhatIsWrong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Add(2)
	c := newCrowd(some(2, func(context.Context) (locker.Held, error) {
		both.Done()
		both.Wait() // both have it
		return localHeld{make(local, 2)}, nil
	}), time.Hour, 1)
	for i := range c.takes {
		take := c.takes[i]
		c.takes[i] = func(ctx context.Context) (locker.Held, error) {
			h, err := take(ctx)
			h.(localHeld).l <- struct{}{}
			return h, err
		}
	}
	ended := make(chan error)
	go func() { ended <- c.play(ctx) }()
	for seen := false; !seen; runtime.Gosched() {
		c.mu.Lock()
		seen = c.wrong
		c.mu.Unlock()
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("two holders were not told")
	}
	broken := errors.New("broken")
	c = newCrowd(some(2, func(context.Context) (locker.Held, error) { return nil, broken }), 0, 1)
	if err := c.play(t.Context()); !errors.Is(err, broken) {
		t.Errorf("an error was not told: %v", err)
	}
}

// A longer way delays what is sent in both directions, also what nobody asked for.
func TestLinkDelaysBothWays(t *testing.T) {
	const roundTrip = 40 * time.Millisecond
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l, err := startLink(server.Addr().String(), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	near, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for name, way := range map[string][2]net.Conn{"there": {near, far}, "back": {far, near}} {
		start := time.Now()
		if _, err := way[0].Write([]byte("word")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(way[1], got); err != nil || string(got) != "word" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if took := time.Since(start); took < roundTrip/2 {
			t.Errorf("%s: it took %v", name, took)
		}
	}
	near.Close()
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("one side closed, and the other was not told")
	}
}

// Every scenario is for somebody, and the times that it takes are known.
func TestScenarios(t *testing.T) {
	total := 0.0
	for _, s := range All() {
		units := 0
		for _, x := range append([]int{0}, s.Xs...) {
			if x == 0 && len(s.Xs) > 0 {
				continue
			}
			for _, k := range locker.All() {
				if s.Plays(k, x) {
					units++
				}
			}
			if s.Together {
				units = 1
			}
		}
		if units == 0 || s.Reps == 0 || s.Seconds == 0 || s.Limit.Seconds() < s.Seconds || s.About == "" || (len(s.Xs) > 0) != (s.X != "") {
			t.Errorf("%s is incomplete", s.Name)
		}
		total += float64(units*s.Reps) * s.Seconds
	}
	if total > 25*60 {
		t.Errorf("the race takes %.0f minutes, more than is told", total/60)
	}
	t.Logf("%.0f minutes", total/60)
}
