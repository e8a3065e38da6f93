package zamok_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamoktest"
)

// taker is a call that takes a lease and may wait.
type taker = func(context.Context) (*zamok.Lease, error)

func take(t *testing.T, f taker) *zamok.Lease {
	t.Helper()
	l, err := f(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// behind starts a call that waits, and returns where its lease arrives.
func behind(t *testing.T, f taker) <-chan *zamok.Lease {
	t.Helper()
	got := make(chan *zamok.Lease, 1)
	go func() {
		l, err := f(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	synctest.Wait()
	return got
}

// none says that none of these calls has a lease yet.
func none(t *testing.T, what string, calls ...<-chan *zamok.Lease) {
	t.Helper()
	synctest.Wait()
	for _, c := range calls {
		if len(c) > 0 {
			t.Fatal(what)
		}
	}
}

// at once says that a call has its lease without any time passing.
func atOnce(t *testing.T, what string, c <-chan *zamok.Lease) *zamok.Lease {
	t.Helper()
	synctest.Wait()
	select {
	case l := <-c:
		return l
	default:
		t.Fatal(what)
		return nil
	}
}

// TestCase36ReadersAndAWriter: readers overlap, a writer is let in behind those who
// came first, and readers who come after it wait behind it and then go together.
func TestCase36ReadersAndAWriter(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		a, b := take(t, rw().RLock), take(t, rw().TryRLock)
		_, err := rw().TryLock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Readers != 2 || held.Holder.Token != a.Token() && held.Holder.Token != b.Token() {
			t.Fatalf("a writer beside readers: %v", err)
		}
		w := behind(t, rw().Lock)
		none(t, "a writer beside readers", w)
		if _, err := rw().TryRLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Fatalf("a reader passed a writer who waits: %v", err)
		}
		c, d := behind(t, rw().RLock), behind(t, rw().RLock)
		w2 := behind(t, rw().Lock)
		e := behind(t, rw().RLock)
		release(t, a)
		none(t, "passed a writer who waits", w, c, d)
		release(t, b)
		writer := atOnce(t, "the last reader went, the writer is not in", w)
		if writer.Fence() <= b.Fence() {
			t.Errorf("writer's fence %d after a reader's %d", writer.Fence(), b.Fence())
		}
		none(t, "a reader beside a writer", c, d, w2, e)
		release(t, writer)
		rc, rd := atOnce(t, "a reader is not let in", c), atOnce(t, "the second reader is not let in", d)
		none(t, "passed a writer", w2, e)
		pass(time.Minute) // all are renewed
		for _, l := range []*zamok.Lease{rc, rd} {
			if err := l.Check(t.Context()); err != nil || l.Fence() <= writer.Fence() {
				t.Errorf("reader %d after writer %d: %v", l.Fence(), writer.Fence(), err)
			}
			release(t, l)
		}
		release(t, atOnce(t, "the second writer is not in", w2))
		release(t, atOnce(t, "the last reader is not in", e))
		for _, key := range s.Keys() {
			if !strings.HasPrefix(key, "zamok:fence:") && !strings.HasPrefix(key, "zamok:proc:") {
				t.Errorf("left over: %q", key)
			}
		}
	})
}

// TestCase37WriterTurnsReader: the readers behind it are let in at once, a writer
// waits on.
func TestCase37WriterTurnsReader(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		w := take(t, rw().Lock)
		fence, tok := w.Fence(), w.Token()
		a, b := behind(t, rw().RLock), behind(t, rw().RLock)
		next, late := behind(t, rw().Lock), behind(t, rw().RLock)
		if err := w.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		ra, rb := atOnce(t, "not let in", a), atOnce(t, "not let in", b)
		none(t, "passed a writer", next, late)
		if w.Fence() != fence || w.Token() != tok || w.Err() != nil {
			t.Errorf("the lease changed: %v", w.Err())
		}
		if err := w.Downgrade(t.Context()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		pass(time.Minute)
		for _, l := range []*zamok.Lease{w, ra, rb} {
			if err := l.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if err := l.Extend(t.Context(), 30*time.Second); err != nil {
				t.Error(err)
			}
			none(t, "a writer beside readers", next)
			release(t, l)
		}
		release(t, atOnce(t, "not let in", next))
		release(t, atOnce(t, "not let in", late))
	})
}

// TestCase37DeadReader: its hold ends with its lease, renewed by nobody, while
// others read on; and a writer waits for the last of them only.
func TestCase37DeadReader(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		alive := take(t, rw().RLock)
		dead, err := take(t, rw().RLock).Detach() // nobody renews it
		if err != nil {
			t.Fatal(err)
		}
		pass(16 * time.Second)
		if err := rw().ExtendToken(t.Context(), dead, time.Minute); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("the dead reader's lease: %v", err)
		}
		_, err = rw().TryLock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Readers != 1 {
			t.Errorf("a writer: %v", err)
		}
		w := behind(t, rw().Lock)
		release(t, alive)
		release(t, atOnce(t, "not let in", w))

		if _, err := take(t, rw().RLock).Detach(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		release(t, take(t, rw().Lock))
		if took := time.Since(start); took < 14*time.Second || took > 18*time.Second {
			t.Errorf("a writer behind a dead reader waited %v, want one TTL", took)
		}
	})
}

// A Mutex is the writer of the RWMutex of its name, and so is a foreign program.
func TestMutexIsTheWriter(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := s.Client().RWMutex("doc", nil)
		m := s.Client().Mutex("doc", nil)
		r := take(t, rw.RLock)
		if _, err := m.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) || !strings.Contains(err.Error(), "a reader holds it") {
			t.Errorf("err = %v", err)
		}
		w := waiting(t, m)
		release(t, r)
		l := atOnce(t, "not let in", w)
		if err := l.Downgrade(t.Context()); err == nil || !strings.Contains(err.Error(), "RWMutex") {
			t.Errorf("err = %v", err)
		}
		got := behind(t, rw.RLock)
		release(t, l)
		release(t, atOnce(t, "not let in", got))
		letGo := s.Hold("doc")
		if _, err := rw.TryRLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
		letGo()
	})
}

func TestNoUpgradeAndNoSecondShare(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := s.Client().RWMutex("doc", nil)
		err := rw.RDo(t.Context(), func(ctx context.Context) error {
			var bad *zamok.ConfigError
			if _, err := rw.Lock(ctx); !errors.As(err, &bad) || !strings.Contains(err.Error(), "no upgrade") {
				t.Errorf("upgrade: %v", err)
			}
			if _, err := rw.RLock(ctx); !errors.As(err, &bad) || !strings.Contains(err.Error(), "second share") {
				t.Errorf("a second share: %v", err)
			}
			if _, err := rw.TryLock(ctx); !errors.Is(err, zamok.ErrHeld) {
				t.Errorf("try: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		err = rw.Do(t.Context(), func(ctx context.Context) error {
			if _, err := rw.RLock(ctx); err == nil || !strings.Contains(err.Error(), "wait for itself") {
				t.Errorf("a reader under the writer: %v", err)
			}
			if err := zamok.LeaseFrom(ctx).Downgrade(ctx); err != nil {
				t.Error(err)
			}
			if _, err := rw.Lock(ctx); err == nil || !strings.Contains(err.Error(), "no upgrade") {
				t.Errorf("upgrade: %v", err)
			}
			return nil
		})
		if err != nil || s.Held("doc") {
			t.Errorf("held %v, err %v", s.Held("doc"), err)
		}
	})
}

// A writer who gives up lets in the readers who waited behind it.
func TestWriterGivesUpInTheQueue(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		a := take(t, rw().RLock)
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() {
			_, err := rw().Lock(ctx)
			gaveUp <- err
		}()
		synctest.Wait()
		b, c := behind(t, rw().RLock), behind(t, rw().RLock)
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, l := range []*zamok.Lease{a, atOnce(t, "not let in", b), atOnce(t, "not let in", c)} {
			release(t, l)
		}
	})
}

// A writer who died in the queue holds up the readers behind it no longer than
// until one of them looks.
func TestDeadWriterInTheQueue(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		rw := func() *zamok.RWMutex { return s.Client().RWMutex("doc", nil) }
		a := take(t, rw().RLock)
		set, err := keys.ForName("", "doc")
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"z1/gone/1/x/1", "15000", "zamok:inbox:gone/1/x", "0", "w"}
		if _, err := s.Eval(t.Context(), driver.Call{Script: lua.Acquire, Keys: set.Main, Args: args, Limit: time.Second}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		b := take(t, rw().RLock)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("let in after %v", took)
		}
		release(t, a)
		release(t, b)
	})
}
