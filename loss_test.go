package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// lossOf waits until the lease's context ends and returns why.
func lossOf(t *testing.T, l *zamok.Lease) *zamok.LostError {
	t.Helper()
	<-l.Context().Done()
	var lost *zamok.LostError
	if err := context.Cause(l.Context()); !errors.As(err, &lost) || !errors.Is(err, zamok.ErrLost) {
		t.Fatalf("the context ended with %v, want a *LostError", err)
	}
	if !errors.Is(l.Err(), zamok.ErrLost) {
		t.Fatalf("Err() = %v", l.Err())
	}
	return lost
}

func TestCase02LostReplyAndNoRetryLeavesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Intercept(func(c driver.Call) memory.Fault {
			return memory.Fault{DropReply: c.Script.Name() == "acquire"}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := s.Client().Mutex("job", nil).Lock(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zamok.ErrHeld) {
			t.Fatalf("err = %v", err)
		}
		synctest.Wait()
		if s.Type("lock:job") != "none" {
			t.Error("the key is there although nobody holds it")
		}
	})
}

func TestCase01LostReplyIsTriedAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := true
		s.Intercept(func(c driver.Call) memory.Fault {
			lose := first && c.Script.Name() == "acquire"
			first = first && !lose
			return memory.Fault{DropReply: lose}
		})
		l := lock(t, s.Client().Mutex("job", nil))
		if v, _ := s.Get("lock:job"); v != fmt.Sprintf("%s:%d", l.Token(), l.Fence()) {
			t.Errorf("key %q, fence %d", v, l.Fence())
		}
		if left := time.Until(l.Deadline()); left > 15*time.Second {
			t.Errorf("deadline in %v", left)
		}
		release(t, l)
		if s.Type("lock:job") != "none" {
			t.Error("one release did not free the key")
		}
	})
}

// The acquire is delayed past the caller's patience and arrives after the first
// abandon: a repetition of that finds it.
func TestCase03DelayedAcquireIsUndone(t *testing.T) {
	for _, delay := range []time.Duration{50 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond} {
		bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
			s.Intercept(func(c driver.Call) memory.Fault {
				if c.Script.Name() == "acquire" {
					return memory.Fault{Delay: delay}
				}
				return memory.Fault{}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := s.Client().Mutex("job", nil).TryLock(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("err = %v", err)
			}
			pass(2 * time.Second)
			if s.Type("lock:job") != "none" {
				t.Errorf("delayed by %v: the key is left", delay)
			}
		})
	}
}

// The holder is cut off: its context ends, with its cause, before the server
// can give the lock to another.
func TestCase04CutOffHolderStopsFirst(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Second} {
		bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
			var cut atomic.Bool
			s.Intercept(func(c driver.Call) memory.Fault {
				return memory.Fault{DropRequest: cut.Load() && c.Script.Name() == "renew"}
			})
			l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{Grace: grace}))
			pass(5 * time.Second)
			cut.Store(true)
			lost := lossOf(t, l)
			if lost.Reason != zamok.LostExpired || lost.Err == nil {
				t.Errorf("loss %+v", lost)
			}
			left, ok := s.TTL("lock:job")
			want := max(grace, 300*time.Millisecond)
			if !ok || left < want || left > want+150*time.Millisecond {
				t.Errorf("at the end of the context the server still keeps the lock for %v, want a little more than the grace, %v", left, want)
			}
			// The holder's grace is over before the lock is given up.
			pass(want - 5*time.Millisecond)
			if s.Type("lock:job") == "none" {
				t.Error("given up within the holder's grace")
			}
		})
	}
}

func TestCase05ReleaseWithACancelledContext(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		ctx, cancel := context.WithCancel(t.Context())
		l, err := m.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := l.Release(ctx); err != nil {
			t.Errorf("Release: %v", err)
		}
		if s.Type("lock:job") != "none" {
			t.Error("the key is left")
		}
	})
}

func TestCase06NoCallOutlivesItsContext(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		l := lock(t, c.Mutex("job", nil))
		other := lock(t, c.Mutex("other", nil))
		s.Hang()
		calls := []struct {
			name string
			call func(ctx context.Context) error
		}{
			{"Extend", func(ctx context.Context) error { return l.Extend(ctx, time.Minute) }},
			{"Check", func(ctx context.Context) error { return l.Check(ctx) }},
			{"TryLock", func(ctx context.Context) error { _, err := c.Mutex("x", nil).TryLock(ctx); return err }},
			{"Lock", func(ctx context.Context) error { _, err := c.Mutex("x", nil).Lock(ctx); return err }},
			{"Resume", func(ctx context.Context) error { _, err := c.Mutex("x", nil).Resume(ctx, other.Token()); return err }},
			{"Release", func(ctx context.Context) error { return l.Release(ctx) }},
		}
		for _, tt := range calls {
			name, call := tt.name, tt.call
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			start := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(start); took > 300*time.Millisecond || took < 150*time.Millisecond {
				t.Errorf("%s returned after %v", name, took)
			}
			if !errors.Is(err, zamok.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			if errors.Is(err, zamok.ErrHeld) {
				t.Errorf("%s reads silence as held: %v", name, err)
			}
		}
		s.Unhang()
		pass(3 * time.Second)
		if s.Type("lock:job") != "none" {
			t.Error("the release did not go on behind")
		}
		release(t, other)
	})
}

func TestCase09StallShorterAndLongerThanTheLease(t *testing.T) {
	for _, stall := range []time.Duration{time.Second, 4 * time.Second} {
		bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
			l := lock(t, s.Client().Mutex("job", nil))
			pass(2500 * time.Millisecond)
			s.Hang()
			pass(stall)
			if stall < 3*time.Second {
				s.Unhang()
				pass(10 * time.Second)
				if l.Err() != nil {
					t.Fatalf("lost by a stall of %v: %v", stall, l.Err())
				}
				release(t, l)
				return
			}
			if lossOf(t, l).Reason != zamok.LostExpired {
				t.Error("held through a stall longer than the lease")
			}
			s.Unhang()
		})
	}
}

func TestCase11RenewalFailsOnceForEach(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		failed := map[string]bool{}
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() != "renew" || failed[c.Keys[0]] {
				return memory.Fault{}
			}
			failed[c.Keys[0]] = true
			return memory.Fault{Err: errors.New("reset by peer")}
		})
		c := s.Client()
		var leases []*zamok.Lease
		for i := range 100 {
			leases = append(leases, lock(t, c.Mutex(fmt.Sprint("job", i), nil)))
		}
		pass(30 * time.Second)
		if len(failed) != 100 {
			t.Fatalf("%d renewals failed, want 100", len(failed))
		}
		for _, l := range leases {
			if l.Err() != nil || time.Until(l.Deadline()) < 9*time.Second {
				t.Errorf("%s: %v, %v left", l.Name(), l.Err(), time.Until(l.Deadline()))
			}
			release(t, l)
		}
	})
}

func TestCase18And26CauseOfALoss(t *testing.T) {
	rival := "z1/other/7/abc/1:9000000000000000"
	cases := map[zamok.LossReason]func(s *zamoktest.Server){
		zamok.LostDeleted: func(s *zamoktest.Server) { s.Del("lock:job") },
		zamok.LostTaken:   func(s *zamoktest.Server) { s.Set("lock:job", rival, time.Hour) },
		zamok.LostData:    func(s *zamoktest.Server) { s.Wipe(); s.Restart() },
	}
	for want, do := range cases {
		bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
			c := s.Client()
			l := lock(t, c.Mutex("job", nil))
			do(s)
			start := time.Now()
			lost := lossOf(t, l)
			if lost.Reason != want || lost.Fence != l.Fence() || lost.Name != "job" {
				t.Errorf("%s: %+v", want, lost)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s: told after %v, want within one renewal", want, took)
			}
			if want == zamok.LostData {
				next := lock(t, c.Mutex("job", nil))
				if next.Fence() <= l.Fence() {
					t.Error("the fence did not grow over the loss of data")
				}
				release(t, next)
			}
		})
	}
}

func TestCase18WrongTypeIsAClearError(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.SetList("lock:job")
		m := s.Client().Mutex("job", nil)
		_, err := m.Lock(t.Context())
		_, err2 := m.TryLock(t.Context())
		for _, err := range []error{err, err2} {
			var refused *zamok.ServerError
			if !errors.As(err, &refused) || refused.Code != "WRONGTYPE" || refused.Hint == "" || refused.Denied() {
				t.Errorf("err = %v", err)
			}
		}
	})
}

// A cause that only the clock knows: the lease is over although no timer has
// fired yet, as after a pause of the process.
func TestErrLooksAtTheClock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := s.Client().Mutex("job", nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // no renewal and no timer any more
		pass(16 * time.Second)
		if err := l.Err(); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Err() = %v", err)
		}
	})
}
