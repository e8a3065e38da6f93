package zamok_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestCloseReleasesAndTells(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		l := lock(t, c.Mutex("a", nil))
		rest := lock(t, c.Mutex("rest", &zamok.MutexConfig{MinHold: time.Minute}))
		s.Hold("b")
		waiting := make(chan error, 1)
		go func() {
			_, err := c.Mutex("b", nil).Lock(context.Background())
			waiting <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if lossOf(t, l).Reason != zamok.LostClosed {
			t.Error("not told that the client was closed")
		}
		if err := <-waiting; !errors.Is(err, zamok.ErrClosed) {
			t.Errorf("the waiter: %v", err)
		}
		if s.Type("lock:a") != "none" || s.ZCard("zamok:queue:{lock:b}") != 0 {
			t.Error("something is left on the server")
		}
		if s.Type("lock:rest") == "none" {
			t.Error("Close cut a MinHold short")
		}
		if err := rest.Release(context.Background()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Release after Close: %v", err)
		}
		if _, err := c.Mutex("a", nil).TryLock(context.Background()); !errors.Is(err, zamok.ErrClosed) {
			t.Errorf("TryLock after Close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestCloseIsBoundedWhenTheServerHangs(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		lock(t, c.Mutex("a", nil))
		s.Hang()
		start := time.Now()
		if err := c.Close(); err == nil {
			t.Error("Close says that all was released")
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestForgottenReleaseCostsOneTTL(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := s.Client().Mutex("job", nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		cancel()
		if l.Context().Err() == nil || !errors.Is(context.Cause(l.Context()), context.Canceled) {
			t.Errorf("cause %v", context.Cause(l.Context()))
		}
		pass(15 * time.Second)
		if s.Type("lock:job") != "none" {
			t.Error("still renewed after its context ended")
		}
	})
}
