package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

var abc = []string{"c", "a", "b"}

func lockAll(t *testing.T, m *zamok.Multi) *zamok.Leases {
	t.Helper()
	h, err := m.Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return h
}

func releaseAll(t *testing.T, h *zamok.Leases) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// ofLocks are the keys of locks and queues.
func ofLocks(s *zamoktest.Server) []string {
	return slices.DeleteFunc(s.Keys(), func(k string) bool {
		return !strings.HasPrefix(k, "lock:") && !strings.HasPrefix(k, "zamok:queue:")
	})
}

func TestMultiTakesAllInOneRequest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Multi(abc, nil)
		for _, take := range []func(context.Context) (*zamok.Leases, error){m.Lock, m.TryLock} {
			before := s.Calls()
			h, err := take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if after := s.Calls(); after["multi_acquire"] != before["multi_acquire"]+1 || after["acquire"] != before["acquire"] {
				t.Errorf("calls before %v, after %v", before, after)
			}
			tokens := map[string]bool{}
			for _, name := range abc {
				l := h.Lease(name)
				if v, _ := s.Get("lock:" + name); v != fmt.Sprintf("%s:%d", l.Token(), l.Fence()) {
					t.Errorf("%s: the key is %q, want TOKEN:FENCE", name, v)
				}
				if ttl, _ := s.TTL("lock:" + name); ttl != 15*time.Second {
					t.Errorf("%s: TTL %v", name, ttl)
				}
				tokens[l.Token()] = true
			}
			if len(tokens) != 3 || h.Lease("d") != nil || h.Err() != nil || h.Check(t.Context()) != nil {
				t.Errorf("tokens %v, Lease(d) = %v, Err() = %v", tokens, h.Lease("d"), h.Err())
			}
			if left := time.Until(h.Deadline()); left < 14*time.Second || left >= 15*time.Second {
				t.Errorf("deadline in %v", left)
			}
			if err := h.Extend(t.Context(), time.Minute); err != nil || time.Until(h.Deadline()) < 59*time.Second {
				t.Errorf("Extend: %v, deadline in %v", err, time.Until(h.Deadline()))
			}
			releaseAll(t, h)
			if left := ofLocks(s); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if err := h.Release(t.Context()); err != zamok.ErrReleased || h.Err() != zamok.ErrReleased {
				t.Errorf("Release again: %v, Err() = %v", err, h.Err())
			}
			if err := h.Check(t.Context()); err != zamok.ErrReleased || !errors.Is(context.Cause(h.Context()), zamok.ErrReleased) {
				t.Errorf("Check: %v, cause %v", err, context.Cause(h.Context()))
			}
		}
	})
}

func TestMultiMistakes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprint(i))
		}
		for _, c := range []struct {
			m     *zamok.Multi
			field string
		}{
			{c.Multi(nil, nil), "names"},
			{c.Multi(many, nil), "names"},
			{c.Multi([]string{"a", "b", "a"}, nil), "names"},
			{c.Multi([]string{"a", ""}, nil), "name"},
			{c.Multi([]string{"a", "b}c"}, nil), "name"},
			{c.Multi(abc, &zamok.MutexConfig{Key: "own"}), "MutexConfig.Key"},
			{c.Multi(abc, &zamok.MutexConfig{MinHold: time.Second}), "MutexConfig.MinHold"},
			{c.Multi(abc, &zamok.MutexConfig{TTL: -1}), "MutexConfig.TTL"},
		} {
			_, lock := c.m.Lock(t.Context())
			_, try := c.m.TryLock(t.Context())
			f := func(context.Context) error { t.Error("it ran"); return nil }
			for _, err := range []error{lock, try, c.m.Do(t.Context(), f), c.m.TryDo(t.Context(), f)} {
				var bad *zamok.ConfigError
				if !errors.As(err, &bad) || bad.Field != c.field {
					t.Errorf("err = %v, want a mistake in %s", err, c.field)
				}
			}
		}
		if err := c.Multi(abc, nil).Do(t.Context(), nil); err == nil {
			t.Error("Do(nil) is no mistake")
		}
		if n := len(s.Calls()); n != 0 {
			t.Errorf("%v were sent", s.Calls())
		}
		releaseAll(t, lockAll(t, c.Multi(many[:64], nil)))
		releaseAll(t, lockAll(t, c.Multi([]string{"one"}, nil)))
	})
}

func TestMultiTryLockIsAllOrNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Multi(abc, nil)
		for _, name := range abc {
			holder := lock(t, s.Client().Mutex(name, nil))
			_, err := m.TryLock(t.Context())
			var held *zamok.HeldError
			if !errors.As(err, &held) || held.Name != name || held.Fence != holder.Fence() {
				t.Errorf("%s is held: %v", name, err)
			}
			if keys := ofLocks(s); !slices.Equal(keys, []string{"lock:" + name}) {
				t.Errorf("%s is held: keys %q", name, keys)
			}
			release(t, holder)
		}
		reader, err := s.Client().RWMutex("b", nil).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("beside a reader: %v", err)
		}
		release(t, reader)
		// Of a free lock with a queue the first who is there gets it, and an entry of one
		// who is gone bars nobody.
		first := lock(t, s.Client().Mutex("b", nil))
		waiter := waiting(t, s.Client().Mutex("b", nil))
		s.Del("lock:b")
		if _, err := m.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("the waiter came first: %v", err)
		}
		release(t, <-waiter)
		_ = first.Release(t.Context())
		s.ZAdd("zamok:queue:{lock:b}", "w|z1/h/1/gone/1|5000|zamok:inbox:h/1/gone", 1)
		h, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatalf("behind one who is gone: %v", err)
		}
		releaseAll(t, h)
	})
}

// While it waits for one name it has those before it and none behind, and it goes on
// by itself, at each name in its turn.
func TestMultiWaitsInOneOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		b, c := lock(t, s.Client().Mutex("b", nil)), lock(t, s.Client().Mutex("c", nil))
		got := make(chan *zamok.Leases)
		m := s.Client().Multi(abc, nil)
		go func() { got <- lockAll(t, m) }()
		pass(time.Minute)
		if !s.Held("a") || s.Waiters("b") != 1 || s.Waiters("c") != 0 {
			t.Errorf("keys %q", ofLocks(s))
		}
		release(t, b)
		pass(time.Minute)
		if !s.Held("b") || s.Waiters("c") != 1 {
			t.Errorf("keys %q", ofLocks(s))
		}
		release(t, c)
		releaseAll(t, <-got)
	})
}

func TestCase40PairsInRandomOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(time.Millisecond)
		names := []string{"a", "b", "c", "d", "e"}
		in := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 20 {
			c := s.Client()
			all.Go(func() {
				for range 20 {
					i := rand.N(len(names))
					two := []string{names[i], names[(i+1+rand.N(len(names)-1))%len(names)]}
					enter := func(n int) {
						mu.Lock()
						defer mu.Unlock()
						for _, name := range two {
							if in[name] += n; in[name] > 1 {
								t.Errorf("two are in %s", name)
							}
						}
					}
					err := c.Multi(two, nil).Do(t.Context(), func(context.Context) error {
						enter(1)
						defer enter(-1)
						pass(rand.N(5 * time.Millisecond))
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if left := ofLocks(s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

func TestMultiKeepsTheQueue(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("b", nil))
		var order []int
		var all sync.WaitGroup
		for i := range 12 {
			c := s.Client()
			do := c.Mutex("b", nil).Do
			if i%2 == 0 {
				do = c.Multi([]string{"b", fmt.Sprint("z", i)}, nil).Do
			}
			all.Go(func() {
				if err := do(t.Context(), func(context.Context) error {
					order = append(order, i) // guarded by b
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		release(t, first)
		all.Wait()
		if !slices.IsSorted(order) || len(order) != 12 {
			t.Errorf("the order is %v", order)
		}
	})
}

func TestMultiUnderItself(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		err := c.Multi(abc, nil).Do(t.Context(), func(ctx context.Context) error {
			before := s.Calls()["acquire"] + s.Calls()["multi_acquire"]
			for _, name := range abc {
				if _, err := c.Mutex(name, nil).Lock(ctx); err == nil || !strings.Contains(err.Error(), "would wait for itself") {
					t.Errorf("Mutex %s: %v", name, err)
				}
				if _, err := c.Multi([]string{"z", name}, nil).Lock(ctx); err == nil || !strings.Contains(err.Error(), "would wait for itself") {
					t.Errorf("Multi with %s: %v", name, err)
				}
				if l := zamok.LeasesFrom(ctx).Lease(name); l == nil || l.Name() != name {
					t.Errorf("LeasesFrom: %v", l)
				}
			}
			if after := s.Calls()["acquire"] + s.Calls()["multi_acquire"]; after != before {
				t.Errorf("%d requests were sent", after-before)
			}
			if _, err := c.Multi([]string{"z", "b"}, nil).TryLock(ctx); !errors.Is(err, zamok.ErrHeld) {
				t.Errorf("TryLock: %v", err)
			}
			return c.Multi([]string{"d", "e"}, nil).Do(ctx, func(ctx context.Context) error {
				if h := zamok.LeasesFrom(ctx); h.Lease("d") == nil || h.Lease("a") != nil {
					t.Error("LeasesFrom is not the innermost")
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		if zamok.LeasesFrom(t.Context()) != nil {
			t.Error("LeasesFrom of no leases")
		}
	})
}

func TestMultiDo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Multi(abc, nil)
		boom := errors.New("boom")
		for _, do := range []func(context.Context, func(context.Context) error) error{m.Do, m.TryDo} {
			if err := do(t.Context(), func(context.Context) error { return boom }); err != boom {
				t.Errorf("err = %v", err)
			}
			func() {
				defer func() { _ = recover() }()
				_ = do(t.Context(), func(context.Context) error { panic("boom") })
			}()
			if left := ofLocks(s); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if err := do(t.Context(), func(ctx context.Context) error { return zamok.LeasesFrom(ctx).Release(ctx) }); err != nil {
				t.Errorf("released within: %v", err)
			}
			var lost *zamok.LostError
			err := do(t.Context(), func(context.Context) error {
				s.Lose("b")
				s.Hold("b")
				return nil
			})
			s.Lose("b")
			if !errors.As(err, &lost) || lost.Name != "b" {
				t.Errorf("err = %v, want the loss of b", err)
			}
		}
	})
}

func TestMultiClosed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		holder := lock(t, s.Client().Mutex("b", nil))
		c := s.Client()
		h := lockAll(t, c.Multi([]string{"x", "y"}, nil))
		got := make(chan error)
		go func() {
			_, err := c.Multi(abc, nil).Lock(t.Context())
			got <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; err != zamok.ErrClosed {
			t.Errorf("err = %v", err)
		}
		if left := ofLocks(s); !slices.Equal(left, []string{"lock:b"}) {
			t.Errorf("left: %q", left)
		}
		var lost *zamok.LostError
		if err := h.Err(); !errors.As(err, &lost) || lost.Reason != zamok.LostClosed {
			t.Errorf("Err() = %v", err)
		}
		release(t, holder)
	})
}

func TestMultiPresence(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		holder := lock(t, s.Client().Mutex("c", nil))
		c := s.Client()
		go func() { releaseAll(t, lockAll(t, c.Multi(abc, nil))) }()
		pass(5 * time.Second)
		r := said(t, s, c.ID())
		if len(r.Waits) != 1 || r.Waits[0].Name != "c" || len(r.Waits[0].Under) != 2 || len(r.Held) != 2 {
			t.Errorf("says %+v", r)
		}
		release(t, holder)
		pass(time.Second)
	})
}
