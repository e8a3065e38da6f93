package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// longest is the longest lease of the deployment.
const longest = 20 * time.Second

// opened runs a test on a server whose first quarantine is over.
func opened(t *testing.T, f func(t *testing.T, s *zamoktest.Server)) {
	t.Helper()
	bubble(t, &zamok.Config{Quarantine: longest}, func(t *testing.T, s *zamoktest.Server) {
		release(t, lock(t, s.Client().Mutex("first", nil)))
		f(t, s)
	})
}

// mustBeClosed: TryLock says that it is quarantine, and for how long.
func mustBeClosed(t *testing.T, left time.Duration, try func(context.Context) (*zamok.Lease, error)) {
	t.Helper()
	_, err := try(t.Context())
	var closed *zamok.QuarantineError
	if !errors.As(err, &closed) || !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) {
		t.Fatalf("got %v, want a *QuarantineError that is ErrUnavailable and not ErrHeld", err)
	}
	if closed.Left != left {
		t.Errorf("%v left, want %v", closed.Left, left)
	}
}

func TestQuarantineOfANewServer(t *testing.T) {
	log := new(strings.Builder)
	cfg := &zamok.Config{Quarantine: longest, TTL: 5 * time.Second}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		loud := *cfg
		loud.Logger = slog.New(slog.NewTextHandler(log, nil))
		c, err := zamok.New(s, &loud)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Mutex("job", nil)
		mustBeClosed(t, longest, m.TryLock)
		pass(4 * time.Second)
		mustBeClosed(t, longest-4*time.Second, m.TryLock)
		mustBeClosed(t, longest-4*time.Second, s.Client().RWMutex("job", nil).TryRLock)
		mustBeClosed(t, longest-4*time.Second, s.Client().Semaphore("pool", 2, nil).TryAcquire)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustBeClosed(t, longest-4*time.Second, func(context.Context) (*zamok.Lease, error) { return m.Lock(ctx) })

		began := time.Now()
		l := lock(t, m)
		if waited := time.Since(began); waited < longest-5*time.Second || waited > longest-5*time.Second+100*time.Millisecond {
			t.Errorf("granted after %v, want the rest of %v", waited, longest)
		}
		release(t, l)
		if n := strings.Count(log.String(), "quarantine"); n != 1 {
			t.Errorf("%d lines in the log, want one:\n%s", n, log)
		}
	})
}

// losses are the ways in which a server comes to have data that it had not all along.
var losses = map[string]func(*zamoktest.Server){
	"wiped":     func(s *zamoktest.Server) { s.Wipe() },
	"restarted": func(s *zamoktest.Server) { s.Restart() },
	"restarted without its data": func(s *zamoktest.Server) {
		s.Wipe()
		s.Restart()
	},
}

// TestQuarantineKeepsOthersOut, and without it they come in.
func TestQuarantineKeepsOthersOut(t *testing.T) {
	for _, quarantine := range []time.Duration{0, longest} {
		for name, lose := range losses {
			if name == "restarted" { // with its data, so nothing was lost
				continue
			}
			t.Run(fmt.Sprintf("%s %v", name, quarantine), func(t *testing.T) {
				bubble(t, &zamok.Config{Quarantine: quarantine, TTL: longest}, func(t *testing.T, s *zamoktest.Server) {
					holder := lock(t, s.Client().Mutex("job", nil))
					lose(s)
					l := lock(t, s.Client().Mutex("job", nil))
					if overlap := holder.Err() == nil; overlap != (quarantine == 0) {
						t.Errorf("with a quarantine of %v two held at a time: %v", quarantine, overlap)
					}
					release(t, l)
				})
			})
		}
	}
}

func TestHoldersGoOnInQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		s.Restart()
		mustBeClosed(t, longest, s.Client().Mutex("other", nil).TryLock)
		if err := errors.Join(l.Check(t.Context()), l.Extend(t.Context(), longest)); err != nil {
			t.Errorf("the holder's lease: %v", err)
		}
		granted := make(chan *zamok.Lease)
		began := time.Now()
		go func() { granted <- lock(t, s.Client().Mutex("job", nil)) }()
		s.AwaitWaiters("job", 1)
		pass(longest / 2)
		if err := l.Check(t.Context()); err != nil {
			t.Errorf("it was not renewed: %v", err)
		}
		release(t, l)
		if s.Held("job") {
			t.Error("what was released in quarantine was passed on")
		}
		next := <-granted
		if waited := time.Since(began); waited < longest || waited > longest+100*time.Millisecond {
			t.Errorf("the waiter got it after %v, want when the quarantine ended", waited)
		}
		release(t, next)
	})
}

func TestOrderAfterQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		granted := make(chan int, 3)
		for i := range 3 {
			go func() {
				l := lock(t, s.Client().Mutex("job", nil))
				granted <- i
				release(t, l)
			}()
			s.AwaitWaiters("job", i+1)
		}
		s.Restart()
		mustBeClosed(t, longest, s.Client().Mutex("other", nil).TryLock)
		release(t, l)
		for i := range 3 {
			if got := <-granted; got != i {
				t.Errorf("waiter %d got it as number %d", got, i)
			}
		}
	})
}

func TestNobodyIsAdmittedInQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		rw := s.Client().RWMutex("job", nil)
		l, err := rw.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan *zamok.Lease)
		go func() {
			l, err := s.Client().RWMutex("job", nil).RLock(t.Context())
			if err != nil {
				t.Error(err)
			}
			granted <- l
		}()
		s.AwaitWaiters("job", 1)
		s.Restart()
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatalf("Downgrade: %v", err)
		}
		mustBeClosed(t, longest, s.Client().RWMutex("job", nil).TryRLock)
		began := time.Now()
		other := <-granted
		if waited := time.Since(began); waited < longest {
			t.Errorf("a reader was let in after %v", waited)
		}
		release(t, other)
		release(t, l)
	})
}

func TestTokensInQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		token, err := l.Detach()
		if err != nil {
			t.Fatal(err)
		}
		s.Restart()
		m := s.Client().Mutex("job", nil)
		mustBeClosed(t, longest, func(ctx context.Context) (*zamok.Lease, error) { return m.Resume(ctx, token) })
		if err := m.ReleaseToken(t.Context(), token); err != nil {
			t.Error(err)
		}
	})
}

func TestSeveralInQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		s.Wipe()
		m := s.Client().Multi([]string{"a", "b"}, nil)
		_, err := m.TryLock(t.Context())
		var closed *zamok.QuarantineError
		if !errors.As(err, &closed) {
			t.Errorf("TryLock: %v", err)
		}
		began := time.Now()
		leases, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < longest {
			t.Errorf("granted after %v", waited)
		}
		if err := leases.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSeveralSayHowLongTheyWaited: the whole call, and not for the last of the names alone.
func TestSeveralSayHowLongTheyWaited(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		a, b := lock(t, s.Client().Mutex("a", nil)), lock(t, s.Client().Mutex("b", nil))
		failed := make(chan error, 1)
		go func() {
			_, err := s.Client().Multi([]string{"a", "b"}, &zamok.MutexConfig{Wait: 10 * time.Second}).Lock(t.Context())
			failed <- err
		}()
		s.AwaitWaiters("a", 1)
		pass(4 * time.Second)
		release(t, a)
		s.AwaitWaiters("b", 1)
		s.Restart()
		release(t, b)
		var closed *zamok.QuarantineError
		if err := <-failed; !errors.As(err, &closed) || closed.Waited < 10*time.Second {
			t.Errorf("got %+v, want a *QuarantineError that says 10s", err)
		}
	})
}

// TestQuarantineWhenTheClockIsSetBack: it does not last as long as the step.
func TestQuarantineWhenTheClockIsSetBack(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		s.Wipe()
		m := s.Client().Mutex("job", nil)
		mustBeClosed(t, longest, m.TryLock)
		pass(longest / 2)
		s.Step(-time.Hour)
		mustBeClosed(t, longest, m.TryLock)
		pass(longest)
		l, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
	})
}

// TestHolderBelievesNoLongerThanAQuarantine: after the clock was set back the server keeps
// a lease for as long as the step, and when it has lost it, grants it again much sooner.
func TestHolderBelievesNoLongerThanAQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		s.Step(-time.Hour)
		if err := l.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropRequest: c.Script.Name() == "renew"} })
		if left := time.Until(l.Deadline()); left > longest {
			t.Errorf("it believes in %v", left)
		}
		s.Wipe()
		next := lock(t, s.Client().Mutex("job", nil))
		if l.Err() == nil {
			t.Error("two hold")
		}
		s.Intercept(nil)
		release(t, next)
	})
}

func TestQuarantineMistakes(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		other, err := zamok.New(s, &zamok.Config{Quarantine: 2 * longest})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		_, err = other.Mutex("job", nil).Lock(t.Context())
		var refused *zamok.ServerError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the server has 20000 - and the client 40000 -") || !strings.Contains(refused.Hint, "Config.Quarantine") {
			t.Errorf("a client with another quarantine: %v", err)
		}
		var bad *zamok.ConfigError
		_, err = s.Client().Mutex("job", &zamok.MutexConfig{TTL: longest + 1}).TryLock(t.Context())
		if !errors.As(err, &bad) || bad.Field != "MutexConfig.TTL" {
			t.Errorf("a TTL beyond it: %v", err)
		}
		l := lock(t, s.Client().Mutex("job", nil))
		if err := l.Extend(t.Context(), longest+1); !errors.As(err, &bad) {
			t.Errorf("Extend beyond it: %v", err)
		}
		release(t, l)
	})
	for _, c := range []zamok.Config{{Quarantine: time.Millisecond}, {Quarantine: 25 * time.Hour}, {Quarantine: time.Second, TTL: 2 * time.Second}} {
		var bad *zamok.ConfigError
		if _, err := zamok.New(memory.New(), &c); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	var bad *zamok.ConfigError
	if _, err := zamok.New(clustered{memory.New()}, &zamok.Config{Quarantine: time.Second}); !errors.As(err, &bad) || bad.Field != "Config.Quarantine" {
		t.Errorf("on a cluster: %v", err)
	}
}

type clustered struct{ *memory.Server }

func (clustered) Clustered() bool { return true }

// TestNoQuarantineCostsNothing: nothing more is sent than before.
func TestNoQuarantineCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, nil)
		release(t, lock(t, s.Client().Mutex("job", nil)))
		if s.Type("zamok:node") != "none" {
			t.Error("the key of the node is there")
		}
	})
}
