package zamok_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestPermitReleasedTwiceByTheLibrary: its first reply was lost, and others have
// taken permits since ours.
func TestPermitReleasedTwiceByTheLibrary(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		a := acquire(t, s.Client().Semaphore("api", 5, nil))
		acquire(t, s.Client().Semaphore("api", 5, nil))
		var sent atomic.Bool
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script == lua.SemRelease && sent.CompareAndSwap(false, true) {
				if _, err := s.Eval(context.Background(), c); err != nil {
					t.Error(err)
				}
			}
			return memory.Fault{}
		})
		release(t, a)
	})
}

// TestDeafSubscriptionOfASemaphoreIsReplaced: a permit that is learned of by asking,
// and of which a message should have told, is a reason to subscribe anew.
func TestDeafSubscriptionOfASemaphoreIsReplaced(t *testing.T) {
	var up atomic.Int32
	cfg := &zamok.Config{Trace: &zamok.Trace{Subscription: func(err error) {
		if err == nil {
			up.Add(1)
		}
	}}}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
		first := acquire(t, s.Client().Semaphore("job", 1, nil))
		c := s.Client()
		got := queueing(t, c.Semaphore("job", 1, nil))
		pass(500 * time.Millisecond)
		release(t, first)
		second := <-got
		s.InterceptMessage(nil)
		release(t, second)
		third := acquire(t, s.Client().Semaphore("job", 1, nil))
		got = queueing(t, c.Semaphore("job", 1, nil))
		release(t, third)
		release(t, <-got)
		if up.Load() < 2 {
			t.Errorf("%d subscriptions, want a second one", up.Load())
		}
	})
}

// TestManyPermitsWhileMessagesAreLost: one deaf process with 60 waiters, all of whom
// may go.
func TestManyPermitsWhileMessagesAreLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		sem := s.Client().Semaphore("api", 1, nil)
		acquire(t, sem)
		waiter := s.Client()
		var all []<-chan *zamok.Lease
		for range 60 {
			all = append(all, queueing(t, waiter.Semaphore("api", 1, nil)))
		}
		pass(10 * time.Second)
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
		start := time.Now()
		if err := sem.SetLimit(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		for _, got := range all {
			<-got
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the last after %v", took)
		}
	})
}

// TestALockIsNoSemaphore: an exact key that is a semaphore's.
func TestALockIsNoSemaphore(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		_, err := s.Client().Mutex("x", &zamok.MutexConfig{Key: "semaphore:x"}).TryLock(t.Context())
		var bad *zamok.ConfigError
		if !errors.As(err, &bad) || bad.Field != "MutexConfig.Key" {
			t.Errorf("err = %v", err)
		}
	})
}

// TestPermitThatEndsIsNoticedAtOnce: the first in the queue knows when the first
// permit ends, whatever those behind it do.
func TestPermitThatEndsIsNoticedAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		sem := func() *zamok.Semaphore { return s.Client().Semaphore("job", 1, nil) }
		start := time.Now()
		if _, err := acquire(t, sem()).Detach(); err != nil { // nobody renews it, for 15 s
			t.Fatal(err)
		}
		got := queueing(t, sem())
		ctx, cancel := context.WithTimeout(t.Context(), 14500*time.Millisecond)
		defer cancel()
		if _, err := sem().Acquire(ctx); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
		release(t, <-got)
		if took := time.Since(start); took > 15100*time.Millisecond {
			t.Errorf("after %v, want the 15 s of the lease", took)
		}
	})
}
