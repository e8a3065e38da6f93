package zamok_test

import (
	"errors"
	"strings"
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

// Readers whose lock is deleted are told, and one who comes after them finds none
// of them.
func TestReadersLoseADeletedLock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		a, b := take(t, rw().RLock), take(t, rw().RLock)
		s.Lose("doc")
		c := take(t, rw().RLock)
		for _, l := range []*zamok.Lease{a, b} {
			if e := lossOf(t, l); e.Reason != zamok.LostDeleted {
				t.Errorf("lost: %v", e)
			}
			if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("release: %v", err)
			}
		}
		if err := c.Check(t.Context()); err != nil {
			t.Error(err)
		}
		s.Lose("doc")
		w := take(t, rw().TryLock)
		if e := lossOf(t, c); e.Reason != zamok.LostTaken || e.By.Token != w.Token() {
			t.Errorf("lost: %v", e)
		}
		release(t, w)
	})
}

// Whatever becomes of the request or its reply, a downgrade leaves a lease that
// holds, and one release frees the lock.
func TestDowngradeWithoutAnAnswer(t *testing.T) {
	for name, fault := range map[string]memory.Fault{"request lost": {DropRequest: true}, "reply lost": {DropReply: true}} {
		for _, forever := range []bool{false, true} {
			bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
				rw := s.Client().RWMutex("doc", nil)
				w := take(t, rw.Lock)
				lost := 0
				s.Intercept(func(call driver.Call) memory.Fault {
					if call.Script == lua.Downgrade && (forever || lost == 0) {
						lost++
						return fault
					}
					return memory.Fault{}
				})
				err := w.Downgrade(t.Context())
				if forever != errors.Is(err, zamok.ErrUnavailable) {
					t.Errorf("%s: %v", name, err)
				}
				pass(time.Minute)
				if err := w.Check(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				release(t, w)
				if s.Held("doc") {
					t.Errorf("%s: still held", name)
				}
			})
		}
	}
}

// A renewal that was sent for a writer and comes when it is a reader tells nothing.
func TestDowngradeOutrunsARenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := s.Client().RWMutex("doc", nil)
		w := take(t, rw.Lock)
		s.Intercept(func(call driver.Call) memory.Fault {
			if call.Script == lua.Renew && len(call.Keys) == 1 {
				return memory.Fault{Delay: 500 * time.Millisecond}
			}
			return memory.Fault{}
		})
		asked := make(chan error)
		go func() { asked <- w.Check(t.Context()) }()
		synctest.Wait()
		if err := w.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-asked; err != nil {
			t.Errorf("check: %v", err)
		}
		pass(time.Minute)
		release(t, w)
	})
}

func TestReadersLeaseByItsToken(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		tok, err := take(t, rw().RLock).Detach()
		if err != nil {
			t.Fatal(err)
		}
		if err := rw().ExtendToken(t.Context(), tok, time.Minute); err != nil {
			t.Fatal(err)
		}
		pass(50 * time.Second)
		w := behind(t, rw().Lock)
		none(t, "a writer beside a reader", w)
		if err := rw().ReleaseToken(t.Context(), tok); err != nil {
			t.Fatal(err)
		}
		l := atOnce(t, "not let in", w)
		if err := rw().ReleaseToken(t.Context(), tok); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("a second time: %v", err)
		}
		if tok, err = l.Detach(); err != nil {
			t.Fatal(err)
		}
		if l, err = rw().Resume(t.Context(), tok); err != nil {
			t.Fatal(err)
		}
		release(t, l)
	})
}

func TestBrokenReader(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", &zamok.MutexConfig{TTL: time.Minute}) }
		a, b := take(t, rw().RLock), take(t, rw().RLock)
		pass(time.Second) // the client listens
		set, err := keys.ForName("", "doc")
		if err != nil {
			t.Fatal(err)
		}
		h, _ := token.Parse(a.Token())
		mark := driver.Call{Script: lua.Mark, Keys: set.Reader()[1:], Limit: time.Second,
			Args: []string{a.Token(), token.Note("alice", "it hangs"), keys.Inbox("", h.Client), set.Lock}}
		if _, err := s.Eval(t.Context(), mark); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		e := lossOf(t, a)
		if e.Reason != zamok.LostBroken || e.Operator != "alice" || e.Why != "it hangs" {
			t.Errorf("lost: %v", e)
		}
		if err := a.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("release: %v", err)
		}
		if err := b.Check(t.Context()); err != nil {
			t.Errorf("the other reader: %v", err)
		}
		synctest.Wait()
		if _, err := rw().TryLock(t.Context()); err == nil || !strings.Contains(err.Error(), "a reader holds it") {
			t.Errorf("err = %v", err)
		}
		release(t, b)
	})
}

// TestBrokenWriterThatReads: who asks for a writer's lease as for a reader's, since a
// downgrade may have come about or because it knows the token alone, is told of a
// break all the same.
func TestBrokenWriterThatReads(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		w := take(t, rw().Lock)
		breakIt(t, s, "doc", w.Token(), "now")
		wantBroken(t, w.Downgrade(t.Context()))

		w = take(t, rw().Lock)
		s.Intercept(func(call driver.Call) memory.Fault { return memory.Fault{DropRequest: call.Script == lua.Downgrade} })
		if err := w.Downgrade(t.Context()); !errors.Is(err, zamok.ErrUnavailable) {
			t.Errorf("err = %v", err)
		}
		breakIt(t, s, "doc", w.Token(), "now")
		wantBroken(t, w.Check(t.Context()))

		tok, err := take(t, rw().Lock).Detach()
		if err != nil {
			t.Fatal(err)
		}
		breakIt(t, s, "doc", tok, "now")
		wantBroken(t, rw().ExtendToken(t.Context(), tok, time.Minute))
		wantBroken(t, rw().ReleaseToken(t.Context(), tok))
	})
}

// TestReadersLockWithoutATTL: somebody took the TTL off and the reader died, so that
// whoever waits does so without end, and is told.
func TestReadersLockWithoutATTL(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := s.Client().RWMutex("doc", &zamok.MutexConfig{Wait: time.Minute})
		s.Set(s.Key("doc"), token.ReadMark+"7", 0)
		_, err := rw.Lock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || !held.NoTTL || !strings.Contains(err.Error(), "held by readers (no TTL") {
			t.Errorf("err = %v", err)
		}
		release(t, take(t, rw.RLock)) // one who reads is let in, and ends it
		release(t, take(t, rw.TryLock))
	})
}
