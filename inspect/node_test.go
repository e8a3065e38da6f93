package inspect_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, &zamok.Config{Quarantine: time.Minute})
		in, err := inspect.New(s, "")
		if err != nil {
			t.Fatal(err)
		}
		look := func(left time.Duration, moved bool) {
			t.Helper()
			n, err := in.Node(t.Context())
			if err != nil || n.Left != left || n.Moved != moved || n.Quarantine != time.Minute || n.Members != nil || n.RunID == "" {
				t.Errorf("%+v, %v; want %v left, moved: %v", n, err, left, moved)
			}
		}
		if n, err := in.Node(t.Context()); err != nil || n.Quarantine != 0 {
			t.Errorf("of a server without clients: %+v, %v", n, err)
		}
		if _, err := in.Stamp(t.Context(), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		look(0, false)
		if _, err := in.Stamp(t.Context(), time.Minute, nil); err != nil {
			t.Errorf("Stamp again: %v", err)
		}
		if _, err := in.Stamp(t.Context(), time.Hour, nil); !errors.Is(err, inspect.ErrUsed) {
			t.Errorf("Stamp with another time: %v", err)
		}
		var bad *zamok.ConfigError
		if _, err := in.Stamp(t.Context(), time.Microsecond, nil); !errors.As(err, &bad) {
			t.Errorf("Stamp with no time: %v", err)
		}
		l, err := s.Client().Mutex("job", nil).TryLock(t.Context())
		if err != nil {
			t.Fatalf("the stamped server does not serve at once: %v", err)
		}
		s.Restart()
		look(0, true)
		if _, err := s.Client().Mutex("other", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrUnavailable) {
			t.Errorf("TryLock: %v", err)
		}
		look(time.Minute, false)
		<-time.After(20 * time.Second)
		look(40*time.Second, false)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}

		quorum := zamoktest.New(t, nil)
		if in, err = inspect.New(quorum, ""); err != nil {
			t.Fatal(err)
		}
		if n, err := in.Stamp(t.Context(), time.Minute, []string{"b:1", "a:1"}); err != nil || !slices.Equal(n.Members, []string{"a:1", "b:1"}) {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

// TestBreakInQuarantine: what is taken away at once goes to nobody.
func TestBreakInQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, &zamok.Config{Quarantine: time.Minute})
		in, err := inspect.New(s, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Client().Mutex("job", nil).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := make(chan time.Time)
		go func() {
			if l, err := s.Client().Mutex("job", nil).Lock(t.Context()); err != nil {
				t.Error(err)
			} else if waited <- time.Now(); l.Release(t.Context()) != nil {
				t.Error("the next one lost it")
			}
		}()
		s.AwaitWaiters("job", 1)
		s.Restart()
		began := time.Now()
		job, err := in.Show(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		b, err := in.Break(t.Context(), job, &inspect.BreakConfig{Why: "stuck", Now: true})
		if err != nil || b.Next != (zamok.Holder{}) {
			t.Errorf("%+v, %v", b, err)
		}
		if d := (<-waited).Sub(began); d < time.Minute {
			t.Errorf("the waiter had it after %v", d)
		}
	})
}
