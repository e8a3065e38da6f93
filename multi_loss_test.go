package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// The loss of any one ends the context of all, with its cause; the others are given
// back by Release and not before.
func TestMultiLosesOne(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		for _, name := range abc {
			h := lockAll(t, s.Client().Multi(abc, nil))
			s.Lose(name)
			<-h.Context().Done()
			var lost *zamok.LostError
			if err := context.Cause(h.Context()); !errors.As(err, &lost) || lost.Name != name || lost.Reason != zamok.LostDeleted {
				t.Errorf("%s: the cause is %v", name, err)
			}
			if err := h.Err(); !errors.As(err, &lost) || lost.Name != name {
				t.Errorf("%s: Err() = %v", name, err)
			}
			if n := len(ofLocks(s)); n != 2 {
				t.Errorf("%s: keys %q", name, ofLocks(s))
			}
			before := s.Calls()["release"]
			err := h.Release(t.Context())
			if !errors.As(err, &lost) || lost.Name != name {
				t.Errorf("%s: Release: %v", name, err)
			}
			if n := len(ofLocks(s)); n != 0 {
				t.Errorf("%s: left: %q", name, ofLocks(s))
			}
			synctest.Wait()
			if n := s.Calls()["release"] - before; n != 3 { // of the lost one behind
				t.Errorf("%s: %d releases", name, n)
			}
			if err := h.Release(t.Context()); !errors.As(err, &lost) {
				t.Errorf("%s: Release again: %v", name, err)
			}
		}
	})
}

// Several lost ones are all told.
func TestMultiLosesSeveral(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		h := lockAll(t, s.Client().Multi(abc, nil))
		s.Down(nil)
		<-h.Context().Done()
		pass(time.Minute)
		s.Up()
		err := h.Release(t.Context())
		for _, name := range abc {
			if text := fmt.Sprintf("lost lock %q", name); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not say %s", err, text)
			}
		}
	})
}

// One that is released alone ends the whole, and is no loss.
func TestMultiOneIsReleasedAlone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		for _, name := range abc {
			h := lockAll(t, s.Client().Multi(abc, nil))
			release(t, h.Lease(name))
			if h.Context().Err() == nil || !errors.Is(h.Err(), zamok.ErrReleased) {
				t.Errorf("%s: the context ended with %v, Err() = %v", name, h.Context().Err(), h.Err())
			}
			releaseAll(t, h)
			if n := len(ofLocks(s)); n != 0 {
				t.Errorf("%s: left: %q", name, ofLocks(s))
			}
		}
	})
}

// After a pause no timer has told anything yet; the clock tells it of each lease, also
// when the last one was renewed later than the others.
func TestMultiErrLooksAtTheClock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		h, err := s.Client().Multi(abc, nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Lease("c").Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		cancel() // no renewal and no timer any more
		pass(16 * time.Second)
		_ = h.Context().Err()
		if cause := context.Cause(h.Context()); !errors.Is(cause, context.Canceled) || !errors.Is(h.Err(), zamok.ErrLost) {
			t.Errorf("cause %v, Err() = %v", cause, h.Err())
		}
	})
}

// A lease that is lost while another is waited for did no harm.
func TestMultiBeginsAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		freeB := s.Hold("b")
		got := make(chan *zamok.Leases)
		m := s.Client().Multi(abc, nil)
		go func() { got <- lockAll(t, m) }()
		synctest.Wait()
		s.Lose("a")
		freeA := s.Hold("a") // a rival has it now
		pass(20 * time.Second)
		if s.Waiters("a") != 1 || s.Waiters("b") != 0 {
			t.Errorf("keys %q", ofLocks(s))
		}
		freeA()
		pass(time.Second)
		freeB()
		h := <-got
		if err := h.Check(t.Context()); err != nil {
			t.Error(err)
		}
		releaseAll(t, h)
	})
}

// An outage of the server while it waits costs the names that it has, and not the wait.
func TestMultiOutageWhileWaiting(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		got := make(chan *zamok.Leases)
		holder := lock(t, s.Client().Mutex("b", nil))
		m := s.Client().Multi(abc, nil)
		go func() { got <- lockAll(t, m) }()
		pass(time.Second)
		s.Down(nil)
		pass(14 * time.Second)
		s.Up()
		h := <-got
		_ = holder.Release(t.Context())
		releaseAll(t, h)
	})
}

// Who broke one that waits wants it to stop.
func TestMultiIsBrokenWhileItWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		defer s.Hold("b")()
		got := make(chan error)
		m := s.Client().Multi(abc, nil)
		go func() {
			_, err := m.Lock(t.Context())
			got <- err
		}()
		synctest.Wait()
		s.BreakLock("a", "we need it")
		var lost *zamok.LostError
		if err := <-got; !errors.As(err, &lost) || lost.Reason != zamok.LostBroken || lost.Name != "a" {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if left := ofLocks(s); !slices.Equal(left, []string{"lock:b"}) {
			t.Errorf("left: %q", left)
		}
	})
}

// Wait bounds the whole, whatever was waited for before.
func TestMultiWait(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		freeA := s.Hold("a")
		defer s.Hold("b")()
		m := s.Client().Multi(abc, &zamok.MutexConfig{Wait: 10 * time.Second})
		start := time.Now()
		go func() {
			pass(6 * time.Second)
			freeA()
		}()
		_, err := m.Lock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Name != "b" || held.Waited != 10*time.Second || held.Err != nil {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if s.Held("a") {
			t.Error("a is left when it returns")
		}
		synctest.Wait()
		if left := ofLocks(s); !slices.Equal(left, []string{"lock:b"}) {
			t.Errorf("left: %q", left)
		}
	})
}

// MaxHold begins when all are held, so that waiting does not use it up.
func TestMultiMaxHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		free := s.Hold("b")
		go func() {
			pass(time.Hour)
			free()
		}()
		h := lockAll(t, s.Client().Multi(abc, &zamok.MutexConfig{MaxHold: time.Minute, Grace: time.Second}))
		start := time.Now()
		<-h.Context().Done()
		var lost *zamok.LostError
		if err := context.Cause(h.Context()); !errors.As(err, &lost) || lost.Reason != zamok.LostMaxHold || time.Since(start) != 59*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		_ = h.Release(t.Context())
	})
}

// Cancelled at any moment, zero keys are left 100 ms later, and the same when the
// client is closed.
func TestCase40CancelAtAnyMoment(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(5 * time.Millisecond)
		for at := time.Duration(0); at < 100*time.Millisecond; at += time.Millisecond {
			for _, busy := range []bool{false, true} {
				for _, closes := range []bool{false, true} {
					cancelAt(t, s, at, busy, closes)
				}
			}
		}
	})
}

func cancelAt(t *testing.T, s *zamoktest.Server, at time.Duration, busy, closes bool) {
	c := s.Client()
	if busy { // b is free after 30 ms, and c is not
		b := lock(t, s.Client().Mutex("b", nil))
		other := lock(t, s.Client().Mutex("c", nil))
		defer release(t, other)
		go func() {
			pass(30 * time.Millisecond)
			release(t, b)
		}()
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(at, func() {
		if closes {
			_ = c.Close()
		}
		cancel()
	})
	h, err := c.Multi(abc, nil).Lock(ctx)
	<-ctx.Done()
	if err == nil {
		_ = h.Release(ctx)
	} else if !errors.Is(err, context.Canceled) && !errors.Is(err, zamok.ErrClosed) {
		t.Errorf("at %v, busy %v, closes %v: %v", at, busy, closes, err)
	}
	pass(100 * time.Millisecond)
	var want []string
	if busy {
		want = []string{"lock:c"}
	}
	if left := ofLocks(s); !slices.Equal(left, want) {
		t.Errorf("at %v, busy %v, closes %v: left %q", at, busy, closes, left)
	}
}

// The one request or its reply is lost or late.
func TestMultiFaults(t *testing.T) {
	for what, fault := range map[string]memory.Fault{
		"request lost": {DropRequest: true},
		"reply lost":   {DropReply: true},
		"reset":        {Err: errors.New("reset"), DropReply: true},
		"request late": {Delay: 1500 * time.Millisecond},
		"reply late":   {DelayReply: 1500 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
				c := s.Client()
				once := func() {
					first := true
					s.Intercept(func(call driver.Call) (f memory.Fault) {
						if first && call.Script.Name() == "multi_acquire" {
							first, f = false, fault
						}
						return f
					})
				}
				once()
				h := lockAll(t, c.Multi(abc, nil))
				for _, name := range abc {
					if v, _ := s.Get("lock:" + name); v != fmt.Sprintf("%s:%d", h.Lease(name).Token(), h.Lease(name).Fence()) {
						t.Errorf("%s: the key is %q", name, v)
					}
				}
				pass(5 * time.Second)
				releaseAll(t, h)

				once()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if h, err := c.Multi(abc, nil).TryLock(ctx); err == nil {
					releaseAll(t, h)
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("err = %v", err)
				}
				pass(5 * time.Second)
				if left := ofLocks(s); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		})
	}
}

// A second request with the same tokens, after the first had taken some: the first
// of them may come last.
func TestMultiLateRequestTakesNothingForGood(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		free := s.Hold("b")
		first := true
		s.Intercept(func(call driver.Call) (f memory.Fault) {
			if first && call.Script.Name() == "multi_acquire" {
				first, f = false, memory.Fault{Delay: 2200 * time.Millisecond} // behind the second, which comes after 2 s
			}
			return f
		})
		if _, err := s.Client().Multi(abc, nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
		free() // so that the late one finds all of them free
		pass(5 * time.Second)
		if left := ofLocks(s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// What a lock is refused for is told by its name.
func TestMultiWrongType(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		for key, name := range map[string]string{"lock:b": "b", "zamok:queue:{lock:c}": "c"} {
			s.SetList(key)
			for _, take := range []func(context.Context) (*zamok.Leases, error){s.Client().Multi(abc, nil).Lock, s.Client().Multi(abc, nil).TryLock} {
				_, err := take(t.Context())
				var refused *zamok.ServerError
				if !errors.As(err, &refused) || refused.Name != name || refused.Code != "WRONGTYPE" {
					t.Errorf("%s: %v", key, err)
				}
				synctest.Wait()
				if left := ofLocks(s); !slices.Equal(left, []string{key}) {
					t.Errorf("%s: left: %q", key, left)
				}
			}
			s.Del(key)
		}
	})
}
