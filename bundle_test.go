package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// trips notes in which company calls are sent.
type trips struct {
	driver.Driver
	mu    sync.Mutex
	sizes []int // 0: by itself
	after func(calls []driver.Call)
}

func (d *trips) note(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes = append(d.sizes, n)
}

// sent returns the sizes since the last time.
func (d *trips) sent() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	sizes := d.sizes
	d.sizes = nil
	return sizes
}

func (d *trips) Eval(ctx context.Context, call driver.Call) (any, error) {
	if name := call.Script.Name(); name == "acquire" || name == "release" { // else it is the presence, at any time
		d.note(0)
	}
	return d.Driver.Eval(ctx, call)
}

func (d *trips) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	d.note(len(calls))
	if d.after != nil {
		defer d.after(calls)
	}
	return d.Driver.EvalAll(ctx, calls)
}

// onTrips runs f with a server that is so far away, one way, and a client of it.
func onTrips(t *testing.T, oneWay time.Duration, f func(t *testing.T, s *zamoktest.Server, d *trips, c *zamok.Client)) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(oneWay)
		d := &trips{Driver: s}
		c, err := zamok.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(t, s, d, c)
	})
}

// lockMany locks names of their own at one time, in the order of their numbers.
func lockMany(ctx context.Context, c *zamok.Client, n int) []<-chan outcome {
	var all []<-chan outcome
	for i := range n {
		all = append(all, locking(ctx, c.Mutex(fmt.Sprint("job", i), nil)))
		synctest.Wait()
	}
	return all
}

const near = 100 * time.Microsecond // one way

// apart is how many calls go by themselves.
const apart = 4

// Calls of one goroutine go one by one, with its ctx, and so do some at a time. What
// comes while these are under way goes as one pipeline when the first has returned, or
// by itself when it is the only one.
func TestCallsAtOneTimeGoTogether(t *testing.T) {
	onTrips(t, near, func(t *testing.T, _ *zamoktest.Server, d *trips, c *zamok.Client) {
		for range 3 {
			release(t, lock(t, c.Mutex("alone", nil)))
		}
		if got, want := d.sent(), []int{0, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("alone: %v, want %v", got, want)
		}
		start := time.Now()
		var leases []*zamok.Lease
		for i, got := range lockMany(t.Context(), c, 20) {
			l := <-got
			trips := min(i/apart+1, 2)
			if took := l.at.Sub(start); l.err != nil || took != time.Duration(trips)*2*near {
				t.Errorf("call %d took %v: %v", i, took, l.err)
			}
			leases = append(leases, l.lease)
		}
		if got, want := d.sent(), []int{0, 0, 0, 0, 16}; !slices.Equal(got, want) {
			t.Errorf("twenty locks: %v, want %v", got, want)
		}
		synctest.Wait() // the pipeline's goroutine has ended
		var all sync.WaitGroup
		for _, l := range leases {
			all.Go(func() { release(t, l) })
		}
		all.Wait()
		if got, want := d.sent(), []int{0, 0, 0, 0, 16}; !slices.Equal(got, want) {
			t.Errorf("twenty releases: %v, want %v", got, want)
		}
		start = time.Now()
		for i, got := range lockMany(t.Context(), c, apart+1) {
			if l := <-got; l.err != nil || l.at.Sub(start) != time.Duration(i/apart+1)*2*near {
				t.Errorf("call %d of five took %v: %v", i, l.at.Sub(start), l.err)
			}
		}
		if got, want := d.sent(), []int{0, 0, 0, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("five locks: %v, want %v", got, want)
		}
	})
}

// A pipeline has a bound, and what is more goes beside it.
func TestAPipelineIsBounded(t *testing.T) {
	onTrips(t, near, func(t *testing.T, _ *zamoktest.Server, d *trips, c *zamok.Client) {
		for _, got := range lockMany(t.Context(), c, apart+40) {
			if l := <-got; l.err != nil {
				t.Error(l.err)
			}
		}
		got := d.sent()
		slices.Sort(got)
		if want := []int{0, 0, 0, 0, 8, 16, 16}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// Far away nobody waits for the trip of another: for a millisecond at most.
func TestAFarServerDelaysNobodyTwice(t *testing.T) {
	onTrips(t, 25*time.Millisecond, func(t *testing.T, _ *zamoktest.Server, _ *trips, c *zamok.Client) {
		start := time.Now()
		for _, got := range lockMany(t.Context(), c, 20) {
			if l := <-got; l.err != nil || l.at.Sub(start) > 51*time.Millisecond {
				t.Errorf("after %v: %v", l.at.Sub(start), l.err)
			}
		}
	})
}

// Who leaves before its call was sent takes it along.
func TestACallThatWasNotSentIsNotSent(t *testing.T) {
	onTrips(t, near, func(t *testing.T, s *zamoktest.Server, _ *trips, c *zamok.Client) {
		first := lockMany(t.Context(), c, apart)
		ctx, cancel := context.WithCancel(t.Context())
		left := locking(ctx, c.Mutex("left", nil))
		stays := locking(t.Context(), c.Mutex("stays", nil))
		synctest.Wait()
		cancel()
		if l := <-left; !errors.Is(l.err, context.Canceled) || time.Since(l.at) > 0 {
			t.Errorf("%v", l.err)
		}
		for _, got := range append(first, stays) {
			if l := <-got; l.err != nil {
				t.Error(l.err)
			}
		}
		if n := s.Calls()["acquire"]; n != apart+1 {
			t.Errorf("%d locks were asked for, want %d", n, apart+1)
		}
	})
}

// Who leaves later is not waited for and delays nobody, and what was granted to it is
// given back. Its call is not changed as long as the driver may read it.
func TestLeavingAPipelineDisturbsNobody(t *testing.T) {
	onTrips(t, near, func(t *testing.T, s *zamoktest.Server, d *trips, c *zamok.Client) {
		seen := make(map[string]bool)
		d.after = func(calls []driver.Call) { // a driver may read until it returns
			for _, call := range calls {
				seen[call.Keys[0]+" "+call.Args[1]] = true
			}
		}
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		first := lockMany(t.Context(), c, apart)
		left := locking(ctx, c.Mutex("left", nil))
		stays := locking(t.Context(), c.Mutex("stays", nil))
		pass(3 * near) // it is at the server
		cancel()
		if l := <-left; !errors.Is(l.err, context.Canceled) || l.at.Sub(start) != 3*near {
			t.Errorf("after %v: %v", l.at.Sub(start), l.err)
		}
		for i, got := range append(first, stays) {
			if l := <-got; l.err != nil || l.at.Sub(start) != time.Duration(2+i/apart*2)*near {
				t.Errorf("%d after %v: %v", i, l.at.Sub(start), l.err)
			}
		}
		pass(time.Millisecond)
		if s.Held("left") {
			t.Error("what was granted to who had left was not given back")
		}
		if !seen["lock:left 15000"] || !seen["lock:stays 15000"] {
			t.Errorf("the driver read %v", seen)
		}
	})
}

// A call that its caller gave up may come as late as its pipeline ends. It is given back
// then too.
func TestALateCallOfAPipelineIsGivenBack(t *testing.T) {
	onTrips(t, near, func(t *testing.T, s *zamoktest.Server, _ *trips, c *zamok.Client) {
		s.Intercept(func(call driver.Call) memory.Fault {
			if call.Script.Name() == "acquire" && call.Keys[0] == "lock:left" {
				return memory.Fault{Delay: 1990 * time.Millisecond}
			}
			return memory.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		lockMany(t.Context(), c, apart)
		left := locking(ctx, c.Mutex("left", nil))
		locking(t.Context(), c.Mutex("stays", nil))
		pass(3 * near)
		cancel()
		<-left
		pass(2500 * time.Millisecond)
		if n := s.Calls()["acquire"]; n != apart+2 {
			t.Fatalf("the test tries nothing: %d calls have come", n)
		}
		if s.Held("left") {
			t.Error("nobody gave it back")
		}
	})
}

// A server that hangs is asked by all, each of whom leaves at its own time, and when it
// goes on nothing of theirs is left.
func TestAHungServerDelaysNobodyBeyondHisLimit(t *testing.T) {
	onTrips(t, near, func(t *testing.T, s *zamoktest.Server, d *trips, c *zamok.Client) {
		s.Hang()
		start := time.Now()
		var all []<-chan outcome
		var cancels []context.CancelFunc
		for i := range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*100*time.Millisecond)
			cancels = append(cancels, cancel)
			all = append(all, locking(ctx, c.Mutex(fmt.Sprint("job", i), nil)))
		}
		for i, got := range all {
			l := <-got
			if want := time.Duration(i+1) * 100 * time.Millisecond; !errors.Is(l.err, context.DeadlineExceeded) || l.at.Sub(start) != want {
				t.Errorf("call %d ended after %v: %v", i, l.at.Sub(start), l.err)
			}
			cancels[i]()
		}
		s.Unhang()
		pass(15 * time.Second)
		for i := range all {
			if s.Held(fmt.Sprint("job", i)) || s.Waiters(fmt.Sprint("job", i)) > 0 {
				t.Errorf("something is left of call %d", i)
			}
		}
	})
}

// Close waits for pipelines, and its bubble ends: no goroutine and no timer is left.
func TestCloseWaitsForPipelines(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint("hangs=", hangs), func(t *testing.T) {
			onTrips(t, near, func(t *testing.T, s *zamoktest.Server, _ *trips, c *zamok.Client) {
				if hangs {
					s.Hang()
				}
				all := lockMany(context.Background(), c, 50)
				start := time.Now()
				err := c.Close()
				if took := time.Since(start); hangs == (err == nil) || took > 3*time.Second {
					t.Errorf("Close took %v: %v", took, err)
				}
				for _, got := range all {
					if l := <-got; !errors.Is(l.err, zamok.ErrClosed) {
						t.Errorf("err = %v", l.err)
					}
				}
				s.Unhang()
				synctest.Wait()
				for i := range all {
					if name := fmt.Sprint("job", i); !hangs && s.Held(name) {
						t.Errorf("%s is held by nobody", name)
					}
				}
			})
		})
	}
}

// Locks, leavings and Close at any time, for the race detector.
func TestBundlesInAnyOrder(t *testing.T) {
	onTrips(t, near, func(t *testing.T, s *zamoktest.Server, _ *trips, c *zamok.Client) {
		var all sync.WaitGroup
		for i := range 64 {
			m := c.Mutex(fmt.Sprint("job", i/2), nil)
			all.Go(func() {
				for n := range 200 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+(i*n)%13)*near)
					l, err := m.Lock(ctx)
					if err == nil {
						err = l.Release(context.Background())
					}
					cancel()
					if errors.Is(err, zamok.ErrClosed) || errors.Is(err, zamok.ErrLost) {
						return
					}
				}
			})
		}
		pass(150 * near)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		for i := range 32 {
			if s.Held(fmt.Sprint("job", i)) {
				t.Errorf("job%d is held by nobody", i)
			}
		}
	})
}
