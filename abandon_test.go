package zamok_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestCase32WaiterLeavesWhileTheServerHangs(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		m := s.Client().Mutex("job", nil)
		done := make(chan error, 1)
		go func() {
			_, err := m.Lock(ctx)
			done <- err
		}()
		synctest.Wait()
		s.Hang()
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		s.Unhang()
		pass(3 * time.Second)
		if n := s.ZCard("zamok:queue:{lock:job}"); n != 0 {
			t.Errorf("%d ghosts in the queue", n)
		}
		release(t, first)
	})
}

// A waiter leaves while its question whether it still stands is under way: the question
// finds no place, and would take a new one that nobody is left to give up.
func TestQuestionBehindAnAbandonLeavesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		m := s.Client().Mutex("job", nil)
		go func() {
			_, err := m.Lock(ctx)
			done <- err
		}()
		synctest.Wait()
		asked := make(chan struct{}, 1)
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() != "acquire" {
				return memory.Fault{}
			}
			asked <- struct{}{}
			return memory.Fault{Delay: time.Second}
		})
		<-asked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		pass(3 * time.Second)
		if n := s.ZCard("zamok:queue:{lock:job}"); n != 0 {
			t.Errorf("%d ghosts in the queue", n)
		}
		release(t, first)
	})
}

// An entry in the queue that comes behind its own abandon is granted to nobody:
// the message finds no waiter and gives the lock back.
func TestGhostIsGivenBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		first := lock(t, s.Client().Mutex("job", nil))
		release(t, lockBehind(t, s, c, first)) // opens c's subscription
		holder := lock(t, s.Client().Mutex("job", nil))
		ghost := "z1/" + c.ID() + "/zzz"
		s.ZAdd("zamok:queue:{lock:job}", "w|"+ghost+"|15000|zamok:inbox:"+c.ID(), 1)
		got := waiting(t, s.Client().Mutex("job", nil))
		start := time.Now()
		release(t, holder)
		release(t, <-got)
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the ghost cost %v", took)
		}
	})
}

// lockBehind has c wait for the lock, which first then releases.
func lockBehind(t *testing.T, s *zamoktest.Server, c *zamok.Client, first *zamok.Lease) *zamok.Lease {
	t.Helper()
	got := waiting(t, c.Mutex(first.Name(), nil))
	release(t, first)
	return <-got
}
