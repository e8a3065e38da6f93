package zamok_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// MaxHold bounds what the holder has, so replicas that are slower than that do not make
// it begin anew for ever.
func TestMaxHoldBeginsWhenReplicasHaveIt(t *testing.T) {
	bubble(t, &zamok.Config{WaitReplicas: 1, WaitTimeout: 5 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(1, 2*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l, err := s.Client().Mutex("job", &zamok.MutexConfig{MaxHold: time.Second}).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		<-l.Context().Done()
		var lost *zamok.LostError
		if !errors.As(context.Cause(l.Context()), &lost) || lost.Reason != zamok.LostMaxHold || time.Since(start) != 750*time.Millisecond {
			t.Errorf("after %v, want MaxHold less Grace: %v", time.Since(start), context.Cause(l.Context()))
		}
	})
}

// Goroutines pass a lock on among themselves from when the first of them has it, however
// long replicas took.
func TestTurnBeginsWhenReplicasHaveIt(t *testing.T) {
	bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 100*time.Millisecond)
		m := s.Client().Mutex("job", nil)
		first := lock(t, m)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { release(t, lock(t, m)) })
		}
		synctest.Wait()
		release(t, first)
		all.Wait()
		if calls := s.Calls(); calls["renew"] != 2 {
			t.Errorf("%v, want the first, which had no fences to pass on, and one turn", calls)
		}
	})
}

// Who goes away while replicas are waited for is not told of a holder that has released.
func TestNobodyHoldsWhatReplicasAreToHave(t *testing.T) {
	bubble(t, &zamok.Config{WaitReplicas: 1, WaitTimeout: 5 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(1, 0)
		first := lock(t, s.Client().Mutex("job", nil))
		s.Replicas(1, 4*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		got := locking(ctx, s.Client().Mutex("job", nil))
		pass(time.Second)
		release(t, first)
		err := (<-got).err
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
	})
}

// Of several locks that too few replicas have, none was acquired.
func TestMultiTracesWhatReplicasHave(t *testing.T) {
	var acquired []string
	cfg := twoReplicas()
	cfg.Trace = &zamok.Trace{Acquired: func(i zamok.AcquiredInfo) { acquired = append(acquired, i.Name) }}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Multi([]string{"a", "b"}, nil)
		s.Replicas(1, 0)
		if _, err := m.TryLock(t.Context()); !errors.As(err, new(*zamok.ReplicasError)) || len(acquired) > 0 {
			t.Errorf("err = %v, acquired %q", err, acquired)
		}
		s.Replicas(2, 0)
		ls, err := m.TryLock(t.Context())
		if err != nil || len(acquired) != 2 {
			t.Fatalf("err = %v, acquired %q", err, acquired)
		}
		if err := ls.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Nor does one who stood for the first of several keep all of them from the others again
// and again, while nobody tells whether replicas have the next.
func TestMultiGivesUpOnReplicas(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 0)
		first := lock(t, s.Client().Mutex("a", nil))
		c, err := zamok.New(&tiring{Server: s.Server, times: 1}, twoReplicas())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Multi([]string{"a", "b"}, nil).Lock(t.Context())
			done <- err
		}()
		pass(time.Second)
		release(t, first)
		start := time.Now()
		if err := <-done; !errors.Is(err, zamok.ErrUnavailable) || time.Since(start) > 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if left := held(s); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// tiring answers so often whether replicas have it, and no more.
type tiring struct {
	*memory.Server
	times int
}

func (d *tiring) EvalWait(ctx context.Context, call driver.Call, replicas int, timeout time.Duration) (any, int64, error) {
	v, n, err := d.Server.EvalWait(ctx, call, replicas, timeout)
	if d.times--; d.times < 0 {
		return nil, 0, errors.New("connection reset by peer")
	}
	return v, n, err
}
