package itest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

func TestCase14ResultsOfARelease(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		ctx := context.Background()

		twice := tryLock(t, c.Mutex("twice", nil))
		if err := twice.Release(ctx); err != nil {
			t.Errorf("once: %v", err)
		}
		if err := twice.Release(ctx); err != zamok.ErrReleased {
			t.Errorf("twice: %v", err)
		}

		short := &zamok.MutexConfig{TTL: time.Second}
		forgotten, cancel := context.WithCancel(ctx)
		expired, err := c.Mutex("expired", short).Lock(forgotten)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // nobody renews it now
		within(t, patience, "it expires", func() bool { return !s.has(t, "lock:expired") })
		reason(t, "expired", expired.Release(ctx), zamok.LostExpired)

		taken := tryLock(t, c.Mutex("taken", nil))
		s.MustDo("SET", "lock:taken", "another")
		reason(t, "taken", taken.Release(ctx), zamok.LostTaken)
		if v := s.get(t, "lock:taken"); v != "another" {
			t.Errorf("a release of what another has made it %q", v)
		}

		// Nobody can have acted on it in between, so this is no loss.
		deleted := tryLock(t, c.Mutex("deleted", nil))
		s.MustDo("DEL", "lock:deleted")
		if err := deleted.Release(ctx); err != nil {
			t.Errorf("deleted: %v", err)
		}
		deleted = tryLock(t, c.Mutex("deleted", nil))
		s.MustDo("DEL", "lock:deleted")
		release(t, tryLock(t, c.Mutex("deleted", nil)))
		reason(t, "deleted, and another had it", deleted.Release(ctx), zamok.LostDeleted)

		// What was never held has no lease that could be released, only a token.
		other := tryLock(t, c.Mutex("other", nil))
		if _, err := c.Mutex("never", nil).Resume(ctx, other.Token()); !errors.Is(err, zamok.ErrLost) || s.has(t, "lock:never") {
			t.Errorf("never held: %v", err)
		}
		release(t, other)
	})
}

func reason(t *testing.T, what string, err error, want zamok.LossReason) {
	t.Helper()
	var lost *zamok.LostError
	if !errors.As(err, &lost) || lost.Reason != want {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestCase15CancelWhileWaiting(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		holder := tryLock(t, lib.client(t, s.URL(), nil).Mutex("job", nil))
		mine := errors.New("mine")
		for _, tt := range []struct {
			name string
			end  func(cancel context.CancelCauseFunc)
			want error
		}{
			{"cancel", func(cancel context.CancelCauseFunc) { cancel(nil) }, context.Canceled},
			{"cause", func(cancel context.CancelCauseFunc) { cancel(mine) }, mine},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			result := goLock(ctx, c.Mutex("job", nil))
			within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
			tt.end(cancel)
			start := time.Now()
			g := receive(t, result, "error")
			promptly(t, 100*time.Millisecond, "the queue is empty", func() bool { return !s.has(t, queue("job")) })
			t.Logf("%s: returned after %v, queue empty after %v", tt.name, g.at.Sub(start), time.Since(start))
			if !errors.Is(g.err, context.Canceled) || !errors.Is(g.err, tt.want) || !strings.Contains(g.err.Error(), "not acquired") {
				t.Errorf("%s: %v", tt.name, g.err)
			}
			if took := g.at.Sub(start); slow(start, g.at, 20*time.Millisecond) {
				t.Errorf("%s: returned after %v", tt.name, took)
			}
		}
		release(t, holder)
	})
}

func TestCase16OneTokenBeginsLikeAnother(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		ctx := context.Background()
		first := tryLock(t, c.Mutex("worker-1", nil))
		tenth := tryLock(t, c.Mutex("worker-10", nil))
		release(t, first)
		if !s.has(t, "lock:worker-10") {
			t.Fatal("releasing worker-1 released worker-10")
		}
		release(t, tenth)

		// The holder's token is longer by one character than that of the lease,
		// which believes that it still holds.
		for _, longer := range []string{"0", "/1", ".", " "} {
			l := tryLock(t, c.Mutex("job", nil))
			other := l.Token() + longer + ":9000000000000000"
			s.MustDo("SET", "lock:job", other)
			reason(t, "Release", l.Release(ctx), zamok.LostTaken)
			if _, err := c.Mutex("job", nil).Resume(ctx, l.Token()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("Resume: %v", err)
			}
			if v := s.get(t, "lock:job"); v != other {
				t.Errorf("%q was made %q", other, v)
			}
			s.MustDo("DEL", "lock:job")
		}
		// And shorter.
		l := tryLock(t, c.Mutex("job", nil))
		other := l.Token()[:len(l.Token())-1] + ":9000000000000000"
		s.MustDo("SET", "lock:job", other)
		if _, err := l.Run(ctx, writeScript, []string{"data"}, "x"); !errors.Is(err, zamok.ErrLost) || s.has(t, "data") {
			t.Errorf("Run: %v", err)
		}
		reason(t, "Release", l.Release(ctx), zamok.LostTaken)
		if v := s.get(t, "lock:job"); v != other {
			t.Errorf("%q was made %q", other, v)
		}
	})
}

func TestCase17BadInputIsRefusedHere(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		d := &spy{Driver: lib.new(t, s.URL())}
		c := clientOn(t, d, nil)
		l := tryLock(t, c.Mutex("job", nil))
		ctx := t.Context()
		sent := d.count()
		try := func(name string, cfg *zamok.MutexConfig) func() error {
			return func() error { _, err := c.Mutex(name, cfg).TryLock(ctx); return err }
		}
		for _, tt := range []struct {
			field string
			call  func() error
		}{
			{"MutexConfig.TTL", try("x", &zamok.MutexConfig{TTL: -1})},
			{"MutexConfig.TTL", try("x", &zamok.MutexConfig{TTL: time.Microsecond})},
			{"MutexConfig.TTL", try("x", &zamok.MutexConfig{TTL: 25 * time.Hour})},
			{"MutexConfig.Wait", try("x", &zamok.MutexConfig{Wait: -1})},
			{"MutexConfig.MinHold", try("x", &zamok.MutexConfig{MinHold: -1})},
			{"MutexConfig.MaxHold", try("x", &zamok.MutexConfig{MaxHold: 1})},
			{"MutexConfig.Grace", try("x", &zamok.MutexConfig{Grace: 10 * time.Second})},
			{"MutexConfig.Reason", try("x", &zamok.MutexConfig{Reason: strings.Repeat("r", 10<<10)})},
			{"name", try("", nil)},
			{"name", try("a\x00b", nil)},
			{"name", try(strings.Repeat("n", 10<<10), nil)},
			{"name", try("a}b{", nil)},
			{"duration", func() error { return l.Extend(ctx, 0) }},
			{"duration", func() error { return l.Extend(ctx, -time.Second) }},
			{"token", func() error { _, err := c.Mutex("job", nil).Resume(ctx, "x"); return err }},
			{"Config.TTL", func() error { _, err := zamok.New(d, &zamok.Config{TTL: -1}); return err }},
			{"Config.TTL", func() error { _, err := zamok.New(d, &zamok.Config{TTL: time.Microsecond}); return err }},
		} {
			err := tt.call()
			var bad *zamok.ConfigError
			if !errors.As(err, &bad) || bad.Field != tt.field || !strings.Contains(err.Error(), tt.field) {
				t.Errorf("%s: %.200v", tt.field, err)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("%s: an error of %d bytes", tt.field, len(err.Error()))
			}
		}
		if now := d.count(); now != sent {
			t.Errorf("%d calls were sent", now-sent)
		}
		release(t, l)
	})
}

func TestCase20WhoPreventsIt(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		l := tryLock(t, lib.client(t, s.URL(), &zamok.Config{Name: "billing"}).Mutex("job", &zamok.MutexConfig{Reason: "nightly invoices"}))
		loser := lib.client(t, s.URL(), nil)
		// It says who it is right behind its first lock, off the way of that.
		within(t, patience, "the holder has said who it is", func() bool { return len(s.keys(t)) == 4 }) // lock, fence, the list of clients, and its text
		span(100 * time.Millisecond)
		for name, call := range map[string]func(m *zamok.Mutex) error{
			"TryLock": func(m *zamok.Mutex) error { _, err := m.TryLock(t.Context()); return err },
			"TryDo":   func(m *zamok.Mutex) error { return m.TryDo(t.Context(), mustNotRun(t)) },
			"Wait": func(*zamok.Mutex) error {
				_, err := loser.Mutex("job", &zamok.MutexConfig{Wait: time.Second}).Lock(t.Context())
				return err
			},
			"deadline": func(m *zamok.Mutex) error {
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				_, err := m.Lock(ctx)
				return err
			},
		} {
			err := call(loser.Mutex("job", nil))
			var held *zamok.HeldError
			if !errors.As(err, &held) || !errors.Is(err, zamok.ErrHeld) {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if held.Holder.PID != os.Getpid() || held.Holder.Host == "" || held.Holder.Token != l.Token() || held.Fence != l.Fence() {
				t.Errorf("%s: %+v", name, held)
			}
			if held.Since < 100*time.Millisecond || held.Since > patience || held.TTL <= 0 || held.TTL > 15*time.Second || held.NoTTL {
				t.Errorf("%s: since %v, %v left", name, held.Since, held.TTL)
			}
			words := []string{`"job"`, "not acquired", host, fmt.Sprint("pid ", os.Getpid()), fmt.Sprint("fence ", l.Fence()), " for ", " left"}
			if name != "deadline" { // no time is left to ask for more
				words = append(words, "billing", "nightly invoices")
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: no %q in %q", name, word, err)
				}
			}
		}
		release(t, l)
	})
}
