package itest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

func TestCase30TwoWritersHandOver(t *testing.T) {
	eachKind(t, func(t *testing.T, lib library, k leaseKind) {
		s := startServer(t)
		each := number(t, "ZAMOK_ITEST_HANDOVERS", 10_000) / 2
		var h history
		var longest [2]time.Duration
		var writers sync.WaitGroup
		for w := range 2 {
			m := k.of(lib.client(t, s.URL(), nil), "job", nil)
			if w == 1 { // of an RWMutex two writers, or a reader and a writer
				m = k.rival(lib.client(t, s.URL(), nil), "job", 1)
			}
			writers.Go(func() {
				for i := range each {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					start := time.Now()
					l, err := m.Lock(ctx)
					if err != nil {
						t.Errorf("writer %d, hand-over %d: %v", w, i, err)
						cancel()
						return
					}
					longest[w] = max(longest[w], counted(start, time.Now()))
					h.held(fmt.Sprint("writer ", w), l)()
					if err := l.Release(ctx); err != nil {
						t.Errorf("writer %d, release %d: %v", w, i, err)
					}
					cancel()
				}
			})
		}
		start := time.Now()
		writers.Wait()
		t.Logf("%d hand-overs in %v, longest waits %v", 2*each, time.Since(start), longest)
		for _, wait := range longest {
			if wait > factor*100*time.Millisecond {
				t.Errorf("one wait took %v", wait)
			}
		}
		if holds := h.check(t); len(holds) != 2*each {
			t.Errorf("%d holds", len(holds))
		}
	})
}

func TestCase32WaiterTimesOutWhileTheServerIsPaused(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		round := 0
		undisturbed(t, func() bool {
			round++
			name := fmt.Sprint("job", round)
			s := p.at(k.keyOf(name))
			holder := tryLock(t, k.rival(p.client(t, 0, nil), name, 0))
			c := p.client(t, 1, nil)
			for _, already := range []bool{true, false} { // in the queue before the pause, or on its way there
				ctx, cancel := context.WithCancel(t.Context())
				var result <-chan got
				if already {
					result = goLock(ctx, k.of(c, name, nil))
					within(t, patience, "it waits", func() bool { return k.waiting(t, s, name) == 1 })
				}
				s.Pause()
				if !already {
					result = goLock(ctx, k.of(c, name, nil))
				}
				span(100 * time.Millisecond)
				cancel()
				if g := receive(t, result, "error"); !errors.Is(g.err, context.Canceled) {
					t.Errorf("err = %v", g.err)
				}
				span(300 * time.Millisecond)
				s.Resume()
			}
			if !shut(t, c) { // waits for what goes on behind
				return false
			}
			if n := k.waiting(t, s, name); n != 0 {
				t.Errorf("%d ghosts in the queue", n)
			}
			release(t, holder)
			if k.taken(t, s, name) {
				t.Errorf("the lock went to a ghost: %q", k.found(t, s, name))
			}
			return true
		})
	})
}

func TestCase34ForeignHolderDeletesItsKey(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		s := p.at(k.keyOf("job"))
		looks := 250 * time.Millisecond
		if k.name == permitKind.name {
			// No other library has a place in our semaphores; what may be is a
			// permit that somebody wrote by hand, whose holder looks like ours.
			t.Log("a permit that was written by hand stands for the foreign holder")
			looks = 2 * time.Second
			s.MustDo("ZADD", k.keyOf("job"), "9000000000000", "3f2b9c9e")
		} else {
			s.MustDo("SET", k.keyOf("job"), "3f2b9c9e", "NX", "PX", "600000")
		}
		var results []<-chan got
		for i := range 4 {
			m := k.of(p.client(t, i, nil), "job", nil)
			if i%2 == 1 { // so that no two can have it together
				m = k.rival(p.client(t, i, nil), "job", i/2)
			}
			results = append(results, goLock(t.Context(), m))
			within(t, patience, "it waits", func() bool { return k.waiting(t, s, "job") == i+1 })
		}
		span(time.Second)
		s.MustDo("DEL", k.keyOf("job"))
		start := time.Now()
		var last int64
		for i, result := range results {
			g := receive(t, result, "lock")
			if g.err != nil {
				t.Fatalf("waiter %d: %v", i, g.err)
			}
			if took := g.at.Sub(start); i == 0 && slow(start, g.at, looks) {
				t.Errorf("the head has it after %v", took)
			}
			for j, later := range results[i+1:] {
				if len(later) > 0 {
					t.Errorf("waiter %d overtook waiter %d", i+1+j, i)
				}
			}
			if g.lease.Fence() <= last {
				t.Errorf("waiter %d has fence %d after %d", i, g.lease.Fence(), last)
			}
			last = g.lease.Fence()
			release(t, g.lease)
		}
	})
}

func TestCase35RemainingValidityAfterAWait(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		s := p.at(k.keyOf("job"))
		const ttl = 2 * time.Second // what is handed over has no more before it is renewed
		cfg := &zamok.Config{TTL: ttl}
		holder := tryLock(t, k.rival(p.client(t, 0, cfg), "job", 0))
		result := goLock(t.Context(), k.of(p.client(t, 1, cfg), "job", nil))
		within(t, patience, "it waits", func() bool { return k.waiting(t, s, "job") == 1 })
		span(ttl + ttl/5)
		start := time.Now()
		release(t, holder)
		g := receive(t, result, "lock")
		left := g.lease.Deadline().Sub(g.at)
		t.Logf("%v left", left)
		if g.err != nil || left < ttl-factor*50*time.Millisecond-stalls.Between(start, g.at) {
			t.Errorf("%v left, %v", left, g.err)
		}
		deadline := g.lease.Deadline()
		if pttl := k.left(t, s, g.lease); pttl > ttl || time.Until(deadline) > pttl {
			t.Errorf("the holder believes in %v, the server has %v", time.Until(deadline), pttl)
		}
		release(t, g.lease)
	})
}

func TestWaitIsBoundedByItsConfig(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		holder := tryLock(t, lib.client(t, s.URL(), nil).Mutex("job", nil))
		c := lib.client(t, s.URL(), nil)
		start := time.Now()
		_, err := c.Mutex("job", &zamok.MutexConfig{Wait: time.Second}).Lock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Place != 1 || held.Waited < 990*time.Millisecond {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took < 990*time.Millisecond || slow(start, time.Now(), time.Second) {
			t.Errorf("after %v", took)
		}
		promptly(t, 100*time.Millisecond, "the queue is empty", func() bool { return !s.has(t, queue("job")) })
		release(t, holder)
	})
}
