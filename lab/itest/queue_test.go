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
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		each := number(t, "ZAMOK_ITEST_HANDOVERS", 10_000) / 2
		var h history
		var longest [2]time.Duration
		var writers sync.WaitGroup
		for w := range 2 {
			m := lib.client(t, s.URL(), nil).Mutex("job", nil)
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
					longest[w] = max(longest[w], time.Since(start))
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
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		holder := tryLock(t, lib.client(t, s.URL(), nil).Mutex("job", nil))
		c := lib.client(t, s.URL(), nil)
		for _, already := range []bool{true, false} { // in the queue before the pause, or on its way there
			ctx, cancel := context.WithCancel(t.Context())
			var result <-chan got
			if already {
				result = goLock(ctx, c.Mutex("job", nil))
				within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
			}
			s.Pause()
			if !already {
				result = goLock(ctx, c.Mutex("job", nil))
			}
			span(100 * time.Millisecond)
			cancel()
			if g := receive(t, result, "error"); !errors.Is(g.err, context.Canceled) {
				t.Errorf("err = %v", g.err)
			}
			span(300 * time.Millisecond)
			s.Resume()
		}
		if err := c.Close(); err != nil { // waits for what goes on behind
			t.Errorf("Close: %v", err)
		}
		if n := s.waiting(t, "job"); n != 0 {
			t.Errorf("%d ghosts in the queue", n)
		}
		release(t, holder)
		if s.has(t, "lock:job") {
			t.Errorf("the lock went to a ghost: %q", s.get(t, "lock:job"))
		}
	})
}

func TestCase34ForeignHolderDeletesItsKey(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		s.MustDo("SET", "lock:job", "3f2b9c9e", "NX", "PX", "600000")
		var results []<-chan got
		for i := range 4 {
			results = append(results, goLock(t.Context(), lib.client(t, s.URL(), nil).Mutex("job", nil)))
			within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == i+1 })
		}
		span(time.Second)
		s.MustDo("DEL", "lock:job")
		start := time.Now()
		var last int64
		for i, result := range results {
			g := receive(t, result, "lock")
			if g.err != nil {
				t.Fatalf("waiter %d: %v", i, g.err)
			}
			if took := g.at.Sub(start); i == 0 && took > factor*250*time.Millisecond {
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
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		cfg := &zamok.Config{TTL: time.Second}
		holder := tryLock(t, lib.client(t, s.URL(), cfg).Mutex("job", nil))
		result := goLock(t.Context(), lib.client(t, s.URL(), cfg).Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
		span(1200 * time.Millisecond)
		release(t, holder)
		g := receive(t, result, "lock")
		left := g.lease.Deadline().Sub(g.at)
		t.Logf("%v left", left)
		if g.err != nil || left < time.Second-factor*50*time.Millisecond {
			t.Errorf("%v left, %v", left, g.err)
		}
		if pttl := s.pttl(t, "lock:job"); pttl > time.Second || time.Until(g.lease.Deadline()) > pttl {
			t.Errorf("the holder believes in %v, the server has %v", time.Until(g.lease.Deadline()), pttl)
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
		_, err := c.Mutex("job", &zamok.MutexConfig{Wait: 300 * time.Millisecond}).Lock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Place != 1 || held.Waited < 290*time.Millisecond {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took < 290*time.Millisecond || took > factor*300*time.Millisecond {
			t.Errorf("after %v", took)
		}
		within(t, factor*100*time.Millisecond, "the queue is empty", func() bool { return !s.has(t, queue("job")) })
		release(t, holder)
	})
}
