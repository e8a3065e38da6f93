package itest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

const lossTTL = 6 * time.Second

// learnsWithin is one renewal of a lease of lossTTL, with the factor, but
// before the lease would have ended by itself: later than that proves nothing.
const learnsWithin = min(factor*lossTTL/3, lossTTL*8/10)

func TestCase18LostToAHand(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), &zamok.Config{TTL: lossTTL})
		for _, tt := range []struct {
			name, by string
			want     zamok.LossReason
			do       func()
		}{
			{"deleted", "", zamok.LostDeleted, func() { s.MustDo("DEL", "lock:job") }},
			{"overwritten", "a foreign program", zamok.LostTaken, func() { s.MustDo("SET", "lock:job", "by-hand") }},
			{"overwritten by one of ours", "db-7 pid 4711", zamok.LostTaken, func() { s.MustDo("SET", "lock:job", "z1/db-7/4711/abc/1:9000000000000000") }},
			{"of another type", "", zamok.LostTaken, func() { s.MustDo("DEL", "lock:job"); s.MustDo("RPUSH", "lock:job", "x") }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				l := tryLock(t, c.Mutex("job", nil))
				tt.do()
				start := time.Now()
				lost := lossOf(t, l)
				if took := time.Since(start); counted(start, time.Now()) > learnsWithin {
					t.Errorf("learned after %v, want one renewal (%v)", took, lossTTL/3)
				}
				if lost.Reason != tt.want || lost.Fence != l.Fence() || lost.Name != "job" {
					t.Errorf("lost: %+v", lost)
				}
				if tt.by != "" && !strings.Contains(lost.Error(), tt.by) {
					t.Errorf("%q does not say by whom", lost)
				}
				before := s.MustDo("TYPE", "lock:job")
				if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
					t.Errorf("Release: %v", err)
				}
				if after := s.MustDo("TYPE", "lock:job"); after != before {
					t.Errorf("the late release made a %v of the %v", after, before)
				}
				s.MustDo("DEL", "lock:job")
			})
		}
	})
}

func TestCase18WrongTypeIsAClearError(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), nil)
		for _, key := range []string{"lock:job", queue("job")} {
			s.MustDo("FLUSHALL")
			s.MustDo("RPUSH", key, "x")
			for name, call := range map[string]func(m *zamok.Mutex) error{
				"TryLock": func(m *zamok.Mutex) error { _, err := m.TryLock(t.Context()); return err },
				"Lock":    func(m *zamok.Mutex) error { _, err := m.Lock(t.Context()); return err },
			} {
				start := time.Now()
				err := call(c.Mutex("job", nil))
				var refused *zamok.ServerError
				if !errors.As(err, &refused) || refused.Code != "WRONGTYPE" || refused.Hint == "" || refused.Denied() {
					t.Errorf("%s with a list at %s: %v", name, key, err)
				}
				if took := time.Since(start); slow(start, time.Now(), 100*time.Millisecond) {
					t.Errorf("%s with a list at %s: said after %v", name, key, took)
				}
				if keys := s.keys(t); len(keys) != 1 {
					t.Errorf("%s with a list at %s leaves %q", name, key, keys)
				}
			}
		}
	})
}

func TestCase26ServerRestartsEmpty(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), &zamok.Config{TTL: failoverTTL})
		for range 100 { // so many that the last is ahead of the clock, if that were possible
			release(t, tryLock(t, c.Mutex("job", nil)))
		}
		l := tryLock(t, c.Mutex("job", nil))
		s.Restart()
		start := time.Now()
		lost := lossOf(t, l)
		if lost.Reason != zamok.LostData || !strings.Contains(lost.Error(), "server lost its data") {
			t.Errorf("lost: %v", lost)
		}
		if took := time.Since(start); took > failoverTTL-500*time.Millisecond {
			t.Errorf("told after %v, want one renewal (%v)", took, failoverTTL/3)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		next := lock(t, c.Mutex("job", nil))
		if next.Fence() <= l.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), l.Fence())
		}
		release(t, next)
	})
}

// fill makes the memory as full as it can be: the limit is below what is in use.
func fill(t *testing.T, s server) {
	t.Helper()
	s.MustDo("CONFIG", "SET", "maxmemory", "0")
	for i := range 30 {
		s.MustDo("SET", "fill"+strings.Repeat("l", i), strings.Repeat("x", 100_000))
	}
	s.MustDo("CONFIG", "SET", "maxmemory", "2mb")
	if _, err := s.Do("SET", "one-more", "x"); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("the memory is not full: %v", err)
	}
}

func TestCase25MemoryFull(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t, "--maxmemory-policy", "noeviction")
		c := lib.client(t, s.URL(), &zamok.Config{TTL: lossTTL, GiveUp: giveUp})
		l := tryLock(t, c.Mutex("job", nil))
		release(t, tryLock(t, c.Mutex("other", nil)))
		fill(t, s)
		for name, call := range map[string]func(m *zamok.Mutex) error{
			"TryLock": func(m *zamok.Mutex) error { _, err := m.TryLock(t.Context()); return err },
			"Lock":    func(m *zamok.Mutex) error { _, err := m.Lock(t.Context()); return err },
		} {
			err := call(c.Mutex("new", nil))
			if !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) || !strings.Contains(err.Error(), "maxmemory") {
				t.Errorf("%s: %v", name, err)
			}
			if s.has(t, "lock:new") || s.has(t, queue("new")) {
				t.Errorf("%s left something", name)
			}
		}
		// Renewal, by hand and by itself, and release need no memory.
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend: %v", err)
		}
		renewed := make(chan error, 100)
		trace := &zamok.Trace{Renewed: func(i zamok.RenewedInfo) { renewed <- i.Err }}
		s.MustDo("CONFIG", "SET", "maxmemory", "0")
		c2 := lib.client(t, s.URL(), &zamok.Config{TTL: lossTTL, Trace: trace})
		l2 := tryLock(t, c2.Mutex("renewed", nil))
		waiter := lib.client(t, s.URL(), nil)
		handed := goLock(t.Context(), waiter.Mutex("renewed", nil))
		within(t, patience, "one waits", func() bool { return s.waiting(t, "renewed") == 1 })
		fill(t, s)
		for range 3 {
			if err := receive(t, renewed, "renewal"); err != nil {
				t.Errorf("renewal: %v", err)
			}
		}
		release(t, l2)
		if g := receive(t, handed, "hand-over"); g.err != nil {
			t.Errorf("hand-over while the memory is full: %v", g.err)
		} else {
			release(t, g.lease)
		}
		release(t, l)
		if s.has(t, "lock:job") || s.has(t, "lock:renewed") {
			t.Error("a release left the key")
		}
	})
}

func TestCase25Evicted(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t, "--maxmemory-policy", "allkeys-lru")
		c := lib.client(t, s.URL(), &zamok.Config{TTL: lossTTL})
		l := tryLock(t, c.Mutex("job", nil))
		start := time.Now()
		evictAll(t, s)
		lost := lossOf(t, l)
		if took := time.Since(start); counted(start, time.Now()) > learnsWithin {
			t.Errorf("learned after %v", took)
		}
		if lost.Reason != zamok.LostDeleted && lost.Reason != zamok.LostData {
			t.Errorf("lost: %v", lost)
		}
		if cause := context.Cause(l.Context()); cause != error(lost) {
			t.Errorf("cause %v", cause)
		}
	})
}
