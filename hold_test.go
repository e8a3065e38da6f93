package zamok_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestMinHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("cron", &zamok.MutexConfig{MinHold: 30 * time.Second})
		start := time.Now()
		l := lock(t, m)
		pass(time.Second)
		release(t, l)
		_, err := s.Client().Mutex("cron", nil).TryLock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || !held.Holder.Resting || !strings.Contains(err.Error(), "resting after") {
			t.Errorf("while it rests: %v", err)
		}
		next := lock(t, s.Client().Mutex("cron", nil))
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("free again after %v", took)
		}
		release(t, next)
		late := lock(t, m)
		pass(31 * time.Second)
		release(t, late)
		if s.Type("lock:cron") != "none" {
			t.Error("rests although it was held for longer")
		}
	})
}

func TestMaxHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		start := time.Now()
		l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{MaxHold: time.Minute}))
		got := waiting(t, s.Client().Mutex("job", nil))
		if lossOf(t, l).Reason != zamok.LostMaxHold {
			t.Errorf("cause %v", context.Cause(l.Context()))
		}
		if took := time.Since(start); took > time.Minute || took < 58*time.Second {
			t.Errorf("ended after %v", took)
		}
		next := <-got
		if took := time.Since(start); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("the next holder came after %v", took)
		}
		release(t, next)
	})
}

func TestCase19DetachAndResume(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		a := s.Client()
		old := lock(t, a.Mutex("job", nil))
		token, err := old.Detach()
		if err != nil || token != old.Token() {
			t.Fatalf("Detach = %q, %v", token, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if s.Type("lock:job") == "none" {
			t.Fatal("Close released a lease that was given away")
		}
		b := s.Client()
		var lost *zamok.LostError
		if _, err := b.Mutex("job", nil).Resume(t.Context(), token+"x"); !errors.As(err, &lost) || lost.Reason != zamok.LostTaken {
			t.Errorf("a wrong token: %v", err)
		}
		l, err := b.Mutex("job", nil).Resume(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		if l.Fence() <= old.Fence() || l.Token() == token {
			t.Error("the lease kept its token or its fence")
		}
		if _, err := s.Client().Mutex("job", nil).Resume(t.Context(), token); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("the old token again: %v", err)
		}
		pass(time.Minute)
		release(t, l)
		if err := old.Release(t.Context()); !errors.Is(err, zamok.ErrReleased) {
			t.Errorf("Release after Detach: %v", err)
		}
	})
}

func TestCase35RemainingValidityAfterAWait(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(200 * time.Microsecond)
		first := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		pass(1200 * time.Millisecond)
		release(t, first)
		l := <-got
		if left := time.Until(l.Deadline()); left < 950*time.Millisecond || left > time.Second {
			t.Errorf("%v of 1s left", left)
		}
		release(t, l)
	})
}

func TestContextThatIsAskedForAfterTheEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		over := func(l *zamok.Lease, why error) {
			t.Helper()
			if ctx := l.Context(); ctx.Err() == nil || !errors.Is(context.Cause(ctx), why) {
				t.Errorf("Err %v, cause %v, want %v", ctx.Err(), context.Cause(ctx), why)
			}
		}
		l := lock(t, c.Mutex("job", nil))
		release(t, l)
		over(l, zamok.ErrReleased)

		l = lock(t, c.Mutex("job", &zamok.MutexConfig{MaxHold: time.Second}))
		pass(2 * time.Second)
		over(l, zamok.ErrLost)

		mine := errors.New("mine")
		outer := lock(t, c.Mutex("outer", nil))
		ctx, cancel := context.WithCancelCause(outer.Context())
		l, err := c.Mutex("job", nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if l.Context() != l.Context() {
			t.Error("two contexts of one lease")
		}
		if zamok.LeaseFrom(l.Context()) != l || l.Context().Err() != nil {
			t.Error("the context is not that of the lease")
		}
		release(t, outer)
		over(l, zamok.ErrReleased) // with that of the lease around it
		cancel(mine)
		release(t, l)
		l, err = c.Mutex("job", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		over(l, zamok.ErrLost)
	})
}
