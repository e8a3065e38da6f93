package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// A hundred rounds on one server, each with a lock of its own, in batches: in each the holders
// are cut off at another moment of their renewal, and rivals wait on a direct way.
func TestCase04CutOffHolderStopsFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		const size, ttl = 25, 2500 * time.Millisecond
		batches := 4
		if p.short {
			batches = 2
		}
		way := p.ways(t)
		c, rival := way.client(t, 0, &zamok.Config{TTL: ttl}), p.client(t, 1, nil)
		for b := range batches {
			var rounds [size]history
			var ends [size]func()
			var leases [size]*zamok.Lease
			for i := range leases {
				leases[i] = tryLock(t, k.of(c, fmt.Sprintf("job-%d-%d", b, i), nil))
				ends[i] = rounds[i].held("holder", leases[i])
			}
			span(rand.N(ttl)) // the moment is the case
			way.all((*drivertest.Proxy).Blackhole)
			var all sync.WaitGroup
			for i, l := range leases {
				all.Go(func() {
					g := receive(t, goLock(t.Context(), k.rival(rival, l.Name(), i)), "lock for the rival")
					if g.err != nil {
						t.Errorf("rival: %v", g.err)
						return
					}
					if l.Context().Err() == nil || l.Err() == nil {
						t.Errorf("%s: a rival has it and the holder still believes in it", l.Name())
					}
					rounds[i].held("rival", g.lease)()
					release(t, g.lease)
				})
			}
			all.Wait()
			for i, l := range leases {
				if lost := lossOf(t, l); lost.Reason != zamok.LostExpired || lost.Err == nil {
					t.Errorf("%s: %+v", l.Name(), lost)
				}
				ends[i]()
				rounds[i].check(t)
			}
			way.all((*drivertest.Proxy).Resume)
		}
	})
}

func TestCase08JobLongerThanItsTTL(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		const ttl = 2 * time.Second
		c, rival := p.client(t, 0, &zamok.Config{TTL: ttl}), p.client(t, 1, &zamok.Config{TTL: ttl})
		var runners, most atomic.Int32
		job := func(context.Context) error {
			most.Store(max(most.Load(), runners.Add(1)))
			span(4 * ttl)
			runners.Add(-1)
			return nil
		}
		started, finished := make(chan struct{}), make(chan error, 1)
		go func() {
			finished <- k.of(c, "job", nil).Do(t.Context(), func(ctx context.Context) error { close(started); return job(ctx) })
		}()
		receive(t, started, "start of the job")
		tries := 0
		for over := false; !over; {
			select {
			case err := <-finished:
				if over = true; err != nil {
					t.Errorf("the job: %v", err)
				}
			case <-time.After(10 * time.Millisecond):
				tries++
				err := k.rival(rival, "job", tries).TryDo(t.Context(), job)
				if err != nil && !errors.Is(err, zamok.ErrHeld) {
					t.Fatalf("rival: %v", err)
				}
				over = err == nil && len(finished) == 1 // it came right behind the first
			}
		}
		if most.Load() != 1 || tries < 20 {
			t.Errorf("%d runners at once, %d tries", most.Load(), tries)
		}
	})
}

func TestCase09StallShorterAndLongerThanTheLease(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		s, way := p.at(k.keyOf("job")), p.ways(t)
		var healthy atomic.Bool // the stall is over
		renewed := make(chan struct{}, 1)
		c := way.client(t, 0, &zamok.Config{TTL: 5 * time.Second, Trace: &zamok.Trace{Renewed: func(i zamok.RenewedInfo) {
			if i.Err == nil && healthy.Load() {
				select {
				case renewed <- struct{}{}:
				default:
				}
			}
		}}})
		rival := p.client(t, 1, nil)
		l := tryLock(t, k.of(c, "job", nil))
		way.all((*drivertest.Proxy).Blackhole)
		span(time.Second)
		way.all((*drivertest.Proxy).Resume)
		healthy.Store(true)
		receive(t, renewed, "renewal after the short stall")
		if err := l.Check(t.Context()); err != nil {
			t.Fatalf("lost by a stall of 1 s: %v", err)
		}

		way.all((*drivertest.Proxy).Blackhole)
		g := receive(t, goLock(t.Context(), k.rival(rival, "job", 0)), "lock for the rival")
		if g.err != nil {
			t.Fatal(g.err)
		}
		theirs := k.found(t, s, "job")
		if l.Context().Err() == nil {
			t.Error("a rival has it and the holder still believes in it")
		}
		if lost := lossOf(t, l); lost.Reason != zamok.LostExpired {
			t.Errorf("lost: %+v", lost)
		}
		way.all((*drivertest.Proxy).Resume)
		if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("the late release: %v", err)
		}
		shut(t, c)
		if now := k.found(t, s, "job"); now != theirs {
			t.Errorf("the old holder made %q of %q", now, theirs)
		}
		release(t, g.lease)
	})
}

// The connection is cut at the renewal of every lock that has not failed yet,
// whatever shares the pipeline with it, and again at the library's own retry.
func TestCase11RenewalFailsOnceForEach(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		const locks, ttl = 100, 10 * time.Second
		way := p.ways(t)
		var mu sync.Mutex
		failed, again := map[string]time.Time{}, map[string]time.Time{}
		var least = ttl
		trace := &zamok.Trace{Renewed: func(i zamok.RenewedInfo) {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := failed[i.Name]; !ok && i.Err != nil {
				failed[i.Name] = time.Now()
			} else if _, done := again[i.Name]; ok && !done {
				again[i.Name] = time.Now()
			}
			least = min(least, i.Left)
		}}
		c := way.client(t, 0, &zamok.Config{TTL: ttl, Trace: trace})
		var leases []*zamok.Lease
		for i := range locks {
			leases = append(leases, tryLock(t, k.of(c, fmt.Sprint(i), nil)))
		}
		match := k.renewals(func(name string) bool {
			mu.Lock()
			defer mu.Unlock()
			_, ok := failed[name]
			return !ok
		})
		var cuts []*drivertest.Fault
		for range 10 * locks {
			way.all(func(p *drivertest.Proxy) { cuts = append(cuts, p.CutBefore(match)) })
		}
		within(t, patience, "every lock failed, and was tried again", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(again) == locks
		})
		for _, cut := range cuts {
			cut.Cancel()
		}
		within(t, patience, "all are renewed", func() bool {
			for _, l := range leases {
				if time.Until(l.Deadline()) < ttl/2 {
					return false
				}
			}
			return true
		})
		mu.Lock()
		defer mu.Unlock()
		for _, l := range leases {
			if l.Err() != nil {
				t.Errorf("%s: %v", l.Name(), l.Err())
			}
			if pause := counted(failed[l.Name()], again[l.Name()]); pause > factor*ttl/10 {
				t.Errorf("%s: tried again after %v", l.Name(), pause)
			}
		}
		if least < ttl/10 {
			t.Errorf("only %v were left at one time", least)
		}
		t.Logf("at the worst moment %v of %v were left", least, ttl)
	})
}
