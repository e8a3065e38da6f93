package zamok_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/token"
	"github.com/zamok-go/zamok/zamoktest"
)

// breakIt does what an operator's command does.
func breakIt(t *testing.T, s *zamoktest.Server, name, tok, how string) string {
	t.Helper()
	set, err := keys.ForName("", name)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := token.Parse(tok)
	reply, err := s.Eval(t.Context(), driver.Call{
		Script: lua.Break, Keys: set.Broken(), Limit: time.Second,
		Args: []string{tok, how, token.Note("alice@web-1", "it is stuck: see #12"), keys.Inbox("", h.Client)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reply.([]any)[0].(string)
}

func wantBroken(t *testing.T, err error) {
	t.Helper()
	var lost *zamok.LostError
	if !errors.As(err, &lost) || lost.Reason != zamok.LostBroken || lost.Operator != "alice@web-1" || lost.Why != "it is stuck: see #12" {
		t.Errorf("err = %v, want one that says who broke it and why", err)
	}
}

// TestBreakAsks: the holder is told at its next renewal, keeps the lock until it
// has stopped, and its release hands over.
func TestBreakAsks(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		holder, next := s.Client(), s.Client()
		l := lock(t, holder.Mutex("job", nil))
		got := waiting(t, next.Mutex("job", nil))
		if how := breakIt(t, s, "job", l.Token(), "ask"); how != "asked" {
			t.Fatal(how)
		}
		if l.Err() != nil {
			t.Fatal("lost before it was told")
		}
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("told after %v, want within a third of the TTL", took)
		}
		wantBroken(t, context.Cause(l.Context()))
		pass(time.Second) // it stops its work
		select {
		case <-got:
			t.Fatal("the lock passed on while the holder was stopping")
		default:
		}
		wantBroken(t, l.Release(t.Context()))
		synctest.Wait()
		release(t, <-got)
	})
}

// TestBreakAsksOneThatListens: a holder of a long lease need not wait for its next
// renewal.
func TestBreakAsksOneThatListens(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{TTL: time.Hour}))
		pass(5 * time.Second)
		breakIt(t, s, "job", l.Token(), "ask")
		pass(time.Millisecond)
		wantBroken(t, l.Err())
	})
}

// TestBreakDuringARenewal: the message comes while a renewal is under way that
// passed the break.
func TestBreakDuringARenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{TTL: time.Hour}))
		pass(5 * time.Second)
		var broke atomic.Bool
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script == lua.Renew && broke.CompareAndSwap(false, true) {
				return memory.Fault{DelayReply: time.Second} // the server answers now, and it is heard later
			}
			return memory.Fault{}
		})
		for !broke.Load() {
			pass(time.Second)
		}
		breakIt(t, s, "job", l.Token(), "ask")
		pass(2 * time.Second)
		wantBroken(t, l.Err())
	})
}

// TestBreakAsksOneThatDoesNotStop: its lease ends on the server by itself, and the
// next has it then.
func TestBreakAsksOneThatDoesNotStop(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		breakIt(t, s, "job", l.Token(), "ask")
		start := time.Now()
		release(t, <-got)
		if took := time.Since(start); took < 10*time.Second || took > 16*time.Second {
			t.Errorf("passed on after %v, want what was left of the TTL", took)
		}
	})
}

func TestBreakNow(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		if how := breakIt(t, s, "job", l.Token(), "now"); how != "handed" {
			t.Fatal(how)
		}
		next := <-got
		if next.Fence() <= l.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), l.Fence())
		}
		<-l.Context().Done()
		wantBroken(t, l.Err())
		var lost *zamok.LostError
		if errors.As(l.Err(), &lost); lost.By.Token != next.Token() {
			t.Errorf("held by %+v, want %s", lost.By, next.Token())
		}
		for how, want := range map[string]string{"now": "taken", "ask": "other"} { // a library may send it twice
			if got := breakIt(t, s, "job", l.Token(), how); got != want || next.Check(t.Context()) != nil {
				t.Errorf("%s a second time: %s and %v, want that it leaves the newer holder alone", how, got, next.Err())
			}
		}
		release(t, next)
		l = lock(t, s.Client().Mutex("job", nil))
		if how := breakIt(t, s, "job", l.Token(), "now"); how != "taken" {
			t.Error(how)
		}
		wantBroken(t, l.Release(t.Context()))
	})
}

// TestBreakIsNotRested: who asked wants the lock free, not at rest.
func TestBreakIsNotRested(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{MinHold: time.Hour}))
		breakIt(t, s, "job", l.Token(), "ask")
		if err := l.Release(t.Context()); err != nil { // it had not been told
			t.Fatal(err)
		}
		release(t, lock(t, s.Client().Mutex("job", &zamok.MutexConfig{Wait: time.Second})))
	})
}

func TestBreakIsSeenByEveryQuestion(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		for name, ask := range map[string]func(*zamok.Lease) error{
			"check":  func(l *zamok.Lease) error { return l.Check(t.Context()) },
			"extend": func(l *zamok.Lease) error { return l.Extend(t.Context(), time.Minute) },
			"resume": func(l *zamok.Lease) error {
				_, err := c.Mutex(l.Name(), nil).Resume(t.Context(), l.Token())
				return err
			},
			"extend by token": func(l *zamok.Lease) error {
				return c.Mutex(l.Name(), nil).ExtendToken(t.Context(), l.Token(), time.Minute)
			},
		} {
			l := lock(t, s.Client().Mutex(name, nil))
			breakIt(t, s, name, l.Token(), "ask")
			before, _ := s.TTL(s.Key(name))
			wantBroken(t, ask(l))
			if after, _ := s.TTL(s.Key(name)); after > before {
				t.Errorf("%s: a broken lease was raised from %v to %v", name, before, after)
			}
		}
	})
}

// TestBreakNowIsToldByToken: also whoever has nothing but the token learns why.
func TestBreakNowIsToldByToken(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		for name, ask := range map[string]func(token string) error{
			"resume":  func(token string) error { _, err := m.Resume(t.Context(), token); return err },
			"extend":  func(token string) error { return m.ExtendToken(t.Context(), token, time.Minute) },
			"release": func(token string) error { return m.ReleaseToken(t.Context(), token) },
		} {
			token, err := lock(t, s.Client().Mutex("job", nil)).Detach()
			if err != nil {
				t.Fatal(err)
			}
			breakIt(t, s, "job", token, "now")
			err = ask(token)
			if t.Log(name); err == nil {
				t.Error("no error")
			}
			wantBroken(t, err)
		}
	})
}

// TestBreakOfALockWithoutATTL: somebody took the TTL off, so that only the holder
// knows until when it believes in its lease.
func TestBreakOfALockWithoutATTL(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.RefuseSubscribe() // it is told late
		l := lock(t, s.Client().Mutex("asked", &zamok.MutexConfig{TTL: time.Hour}))
		pass(time.Minute)
		s.Expire("lock:asked", -1)
		breakIt(t, s, "asked", l.Token(), "ask")
		for l.Context().Err() == nil {
			if !s.Held("asked") {
				t.Fatalf("it is free, and its holder believes for another %v", time.Until(l.Deadline()))
			}
			pass(time.Second)
		}
		wantBroken(t, l.Err())

		l = lock(t, s.Client().Mutex("taken", nil))
		s.Expire("lock:taken", -1)
		breakIt(t, s, "taken", l.Token(), "now")
		<-l.Context().Done()
		wantBroken(t, l.Err())
	})
}

// TestBreakThatIsNotHeard: the message is lost with the subscription, or comes
// before there is one.
func TestBreakThatIsNotHeard(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		m := c.Mutex("job", &zamok.MutexConfig{TTL: time.Hour})
		release(t, lock(t, c.Mutex("other", nil))) // it has said already who it is
		pass(5 * time.Second)
		l := lock(t, m)
		breakIt(t, s, "job", l.Token(), "ask")
		pass(5 * time.Second)
		wantBroken(t, l.Err())
		wantBroken(t, l.Release(t.Context()))
		synctest.Wait()

		l = lock(t, m)
		pass(5 * time.Second)
		s.Break()
		breakIt(t, s, "job", l.Token(), "ask")
		pass(time.Second)
		s.Reconnect()
		pass(5 * time.Second)
		wantBroken(t, l.Err())
	})
}

// TestBreakBeforeTheReply: the holder is told as soon as it is one.
func TestBreakBeforeTheReply(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", &zamok.MutexConfig{TTL: time.Hour})
		release(t, lock(t, m))
		lock(t, s.Client().Mutex("busy", &zamok.MutexConfig{TTL: time.Hour}))
		other := lock(t, m)
		pass(5 * time.Second)
		release(t, other)
		var lost atomic.Bool
		s.Intercept(func(c driver.Call) memory.Fault {
			return memory.Fault{DropReply: c.Script == lua.Acquire && lost.CompareAndSwap(false, true)}
		})
		got := waiting(t, m)
		pass(time.Second)
		value, _ := s.Get("lock:job")
		tok, _, _ := strings.Cut(value, ":")
		if how := breakIt(t, s, "job", tok, "ask"); how != "asked" {
			t.Fatal(how)
		}
		l := <-got
		pass(time.Second)
		wantBroken(t, l.Err())
	})
}
