package once_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

// Who ran it, and when, is told to whoever ran it, and to all who come later.
func TestWhoRanItAndWhen(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			began := time.Now()
			var token string
			out, err := once.Do(t.Context(), on(t, s, policy), "pay", func(ctx context.Context, _ once.Run) (string, error) {
				token = zamok.LeaseFrom(ctx).Token()
				pass(time.Minute)
				return "paid", nil
			})
			wants(t, out, err, "paid", false, nil)
			if off := out.Began.Sub(began); out.By.Token != token || off < 0 || off > time.Second {
				t.Errorf("it ran by %v, %v after it began; want %v", out.By, off, token)
			}
			pass(time.Hour)
			again, err := once.Do(t.Context(), on(t, s, policy), "pay", mustNotRun(t))
			wants(t, again, err, "paid", true, nil)
			if again.By != out.By || !again.Began.Equal(out.Began) {
				t.Errorf("a later call is told of %v at %v, want %v at %v", again.By, again.Began, out.By, out.Began)
			}
		})
	})
}

// The same for a failure that is replayed.
func TestWhoFailed(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		out, err := once.Do(t.Context(), on(t, s, once.GiveUp), "pay", (&thing{}).work(0, "", errors.New("no money")))
		if err == nil || out.By.Token == "" {
			t.Fatalf("it came to %v by %v", err, out.By)
		}
		pass(time.Hour)
		_, err = once.Do(t.Context(), on(t, s, once.GiveUp), "pay", mustNotRun(t))
		var failed *once.FailedError
		if !errors.As(err, &failed) || failed.By != out.By || !failed.Began.Equal(out.Began) {
			t.Errorf("a later call is told %+v, want by %v at %v", failed, out.By, out.Began)
		}
	})
}

// Of an outcome that somebody resolved, that is told.
func TestWhoResolvedIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		out, err := once.Resolve(t.Context(), with(t, c, &once.Config{Policy: once.GiveUp}), "pay", "paid")
		wants(t, out, err, "paid", false, nil)
		again, err := once.Do(t.Context(), on(t, s, once.GiveUp), "pay", mustNotRun(t))
		wants(t, again, err, "paid", true, nil)
		if again.By != out.By || again.By.Client != c.ID() || !again.Began.Equal(out.Began) {
			t.Errorf("told of %v at %v, want %v at %v of client %s", again.By, again.Began, out.By, out.Began, c.ID())
		}
	})
}

// The function's context ends Grace before the lease, and Reason is shown to
// those who wait.
func TestGraceAndReason(t *testing.T) {
	const ttl, grace = 10 * time.Second, 4 * time.Second
	run := func(t *testing.T, s *zamoktest.Server, lock string, do func(fn func(context.Context)) error) {
		held := make(chan *zamok.HeldError, 1)
		err := do(func(ctx context.Context) {
			pass(2 * time.Second) // by then a client has said what it holds
			var other *zamok.HeldError
			_, err := s.Client().Mutex(lock, nil).TryLock(t.Context())
			errors.As(err, &other)
			held <- other
			deadline := zamok.LeaseFrom(ctx).Deadline()
			s.Hang()
			<-ctx.Done()
			s.Unhang()
			if left := time.Until(deadline); left < grace-time.Second/2 || left > grace {
				t.Errorf("its context ended %v before the lease, want %v", left, grace)
			}
		})
		if !errors.Is(err, zamok.ErrLost) {
			t.Errorf("it came to %v, want a loss", err)
		}
		if other := <-held; other == nil || other.Reason != "the month of May" {
			t.Errorf("those who come meanwhile are told %v", other)
		}
	}
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		o := with(t, s.Client(), &once.Config{Policy: once.GiveUp, TTL: ttl, Grace: grace, Reason: "the month of May"})
		run(t, s, "once/pay", func(fn func(context.Context)) error {
			_, err := once.Do(t.Context(), o, "pay", func(ctx context.Context, _ once.Run) (string, error) {
				fn(ctx)
				return "", nil
			})
			return err
		})
	})
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		job, err := once.NewJob(s.Client(), "pay", &once.JobConfig{TTL: ttl, Grace: grace, Reason: "the month of May"})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, "tick/pay", func(fn func(context.Context)) error {
			return once.Tick(t.Context(), job, time.Now().Truncate(time.Second), func(ctx context.Context, _ once.Run) error {
				fn(ctx)
				return nil
			})
		})
	})
}
