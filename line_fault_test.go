package zamok_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestCloseEndsALine: whoever waits is told, and the holder's lease is released.
func TestCloseEndsALine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		client := s.Client()
		m := client.Mutex("job", nil)
		l := turn(t, m)
		var all []<-chan outcome
		for range 10 {
			all = append(all, locking(t.Context(), m))
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		for _, got := range all {
			if end := <-got; !errors.Is(end.err, zamok.ErrClosed) {
				t.Errorf("err = %v", end.err)
			}
		}
		if !errors.Is(l.Err(), zamok.ErrLost) || s.Held("job") || s.Waiters("job") > 0 {
			t.Errorf("%v; something is left", l.Err())
		}
	})
}

// TestALostLeaseStopsNobody, however it is lost: the first who waits here goes to the
// server.
func TestALostLeaseStopsNobody(t *testing.T) {
	for _, c := range []struct {
		how  string
		most time.Duration
		do   func(t *testing.T, s *zamoktest.Server, l *zamok.Lease)
	}{
		{"deleted", 6 * time.Millisecond, func(t *testing.T, s *zamoktest.Server, l *zamok.Lease) {
			s.Lose("job")
			if err := l.Check(t.Context()); !errors.Is(err, zamok.ErrLost) {
				t.Error(err)
			}
		}},
		{"deleted and nobody noticed", 6 * time.Millisecond, func(_ *testing.T, s *zamoktest.Server, _ *zamok.Lease) { s.Lose("job") }},
		{"detached", 2100 * time.Millisecond, func(t *testing.T, _ *zamoktest.Server, l *zamok.Lease) {
			if _, err := l.Detach(); err != nil {
				t.Error(err)
			}
		}},
		{"wiped", 6 * time.Millisecond, func(_ *testing.T, s *zamoktest.Server, _ *zamok.Lease) { s.Wipe() }},
	} {
		t.Run(c.how, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
				m := s.Client().Mutex("job", nil)
				l := turn(t, m)
				start := time.Now()
				first, second := locking(t.Context(), m), locking(t.Context(), m)
				c.do(t, s, l)
				got := <-first
				if took := got.at.Sub(start); got.err != nil || took > c.most {
					t.Errorf("after %v, want %v: %v", took, c.most, got.err)
				}
				release(t, got.lease)
				release(t, (<-second).lease)
			})
		})
	}
}

// TestAForgottenLeaseCostsItsTTL, as anywhere: the holder's context ended, and it did
// not release.
func TestAForgottenLeaseCostsItsTTL(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		first := lock(t, m)
		ctx, crash := context.WithCancel(t.Context())
		next := locking(ctx, m)
		release(t, first)
		start := time.Now()
		behind := locking(t.Context(), m)
		if got := <-next; got.err != nil {
			t.Fatal(got.err)
		}
		crash()
		got := <-behind
		if took := got.at.Sub(start); got.err != nil || took > 2050*time.Millisecond {
			t.Errorf("after %v: %v", took, got.err)
		}
		release(t, got.lease)
	})
}

// TestABreakEndsATurn: whoever has the lock at that time loses it, and the next one
// has it from the server.
func TestABreakEndsATurn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := turn(t, m)
		second, third := locking(t.Context(), m), locking(t.Context(), m)
		release(t, l)
		l = (<-second).lease
		value, _ := s.Get("lock:job")
		token, _, _ := strings.Cut(value, ":")
		if how := breakIt(t, s, "job", token, "ask"); how != "asked" {
			t.Fatal(how)
		}
		start := time.Now()
		<-l.Context().Done() // the client listens, since it has waited
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("told after %v", took)
		}
		wantBroken(t, context.Cause(l.Context()))
		pass(time.Second)
		select {
		case <-third:
			t.Fatal("the lock went on while its holder was stopping")
		default:
		}
		wantBroken(t, l.Release(t.Context()))
		got := (<-third).lease
		if got.Fence() < l.Fence()+4000 {
			t.Errorf("fence %d of the turn of %d", got.Fence(), l.Fence())
		}
		release(t, got)
	})
}

// TestALineDoesNotOutlastGiveUp: nobody waits here for longer than Config.GiveUp while
// the server answers nobody.
func TestALineDoesNotOutlastGiveUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := lock(t, s.Client().Mutex("job", nil))
		standing, behind := locking(t.Context(), m), locking(t.Context(), m)
		pass(3 * time.Second) // the front has looked
		s.Down(errors.New("refused"))
		start := time.Now()
		var late []<-chan outcome
		for range 20 {
			late = append(late, locking(t.Context(), m))
		}
		for _, got := range late {
			end := <-got
			if took := end.at.Sub(start); !errors.Is(end.err, zamok.ErrUnavailable) || errors.Is(end.err, zamok.ErrHeld) || took < 5*time.Second || took > 7*time.Second {
				t.Errorf("after %v: %v", took, end.err)
			}
		}
		pass(5 * time.Second)
		s.Up()
		_ = l.Release(t.Context())
		for _, got := range []<-chan outcome{standing, behind} { // who stood, or as good as, goes on
			end := <-got
			if end.err != nil {
				t.Fatal(end.err)
			}
			release(t, end.lease)
		}
	})
}

// TestALineWithoutAServer: all are told within about GiveUp, and Wait says so too.
func TestALineWithoutAServer(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Down(errors.New("refused"))
		client := s.Client()
		start := time.Now()
		front := locking(t.Context(), client.Mutex("job", nil))
		hasty := locking(t.Context(), client.Mutex("job", &zamok.MutexConfig{Wait: time.Second}))
		var all []<-chan outcome
		for range 50 {
			all = append(all, locking(t.Context(), client.Mutex("job", nil)))
		}
		end := <-hasty
		if took := end.at.Sub(start); !errors.Is(end.err, zamok.ErrUnavailable) || took != time.Second {
			t.Errorf("after %v: %v", took, end.err)
		}
		for _, got := range append(all, front) {
			end := <-got
			if took := end.at.Sub(start); !errors.Is(end.err, zamok.ErrUnavailable) || took > 6500*time.Millisecond {
				t.Errorf("after %v: %v", took, end.err)
			}
		}
	})
}

// TestANewFrontKnowsWhatItsLineKnows: one that has just gone to the server, and goes
// away before that answers, says who has the lock, and not that the server is silent.
func TestANewFrontKnowsWhatItsLineKnows(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		client := s.Client()
		l := turn(t, client.Mutex("job", nil))
		ctx, cancel := context.WithCancel(t.Context())
		got := locking(ctx, client.Mutex("job", nil))
		s.Latency(time.Millisecond)
		pass(6 * time.Millisecond) // the turn is over
		cancel()
		end := <-got
		var held *zamok.HeldError
		if !errors.As(end.err, &held) || held.Fence != l.Fence() || held.Since.Round(time.Millisecond) != 6*time.Millisecond || !errors.Is(end.err, context.Canceled) {
			t.Errorf("err = %v", end.err)
		}
		release(t, l)
	})
}

// TestAFrontThatGoesAwayIsFollowed at once by the next.
func TestAFrontThatGoesAwayIsFollowed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		free := s.Hold("job")
		m := s.Client().Mutex("job", nil)
		ctx, cancel := context.WithCancel(t.Context())
		front, behind := locking(ctx, m), locking(t.Context(), m)
		cancel()
		if end := <-front; !errors.Is(end.err, context.Canceled) {
			t.Error(end.err)
		}
		synctest.Wait()
		if n := s.Waiters("job"); n != 1 {
			t.Errorf("%d at the server, want the next alone", n)
		}
		free()
		release(t, (<-behind).lease)
	})
}

// TestWaitingHereIsTraced as waiting anywhere, and a hook that panics stops nobody.
func TestWaitingHereIsTraced(t *testing.T) {
	var mu sync.Mutex
	var infos []zamok.WaitingInfo
	bad := false
	cfg := &zamok.Config{Trace: &zamok.Trace{Waiting: func(i zamok.WaitingInfo) {
		mu.Lock()
		defer mu.Unlock()
		infos = append(infos, i)
		if bad {
			bad = false
			panic("a hook's mistake")
		}
	}}}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := turn(t, m)
		fails := func() {
			mu.Lock()
			bad = true
			mu.Unlock()
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_, _ = m.Lock(t.Context())
			}()
			if got := <-done; got == nil {
				t.Error("no panic")
			}
		}
		seen := func() []zamok.WaitingInfo {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(infos)
		}
		mu.Lock()
		infos = nil // what came before is not looked at
		mu.Unlock()
		first := locking(t.Context(), m)
		fails()
		second := locking(t.Context(), m)
		if len(seen()) != 3 || seen()[0].Place != 1 || seen()[1].Place != 2 || seen()[2].Place != 2 || seen()[0].Held.Fence != l.Fence() {
			t.Errorf("told %+v", seen())
		}
		pass(5 * time.Millisecond) // the first stands at the server
		synctest.Wait()
		fails()
		release(t, l)
		release(t, (<-first).lease)
		release(t, (<-second).lease)

		l = lock(t, m)
		fails() // as the front
		third := locking(t.Context(), m)
		release(t, l)
		pass(3 * time.Second) // what the hook's mistake left in the queue costs 2 s, as anywhere
		release(t, (<-third).lease)
	})
}

// TestGoingAwayAtTheMomentOfAPass loses nothing, whoever comes first.
func TestGoingAwayAtTheMomentOfAPass(t *testing.T) {
	for range 200 {
		bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
			m := s.Client().Mutex("job", nil)
			l := turn(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			first, second := locking(ctx, m), locking(t.Context(), m)
			go cancel()
			release(t, l)
			if end := <-first; end.err == nil {
				release(t, end.lease)
			}
			end := <-second
			if end.err != nil {
				t.Fatal(end.err)
			}
			release(t, end.lease)
			pass(10 * time.Second)
			if s.Held("job") || s.Waiters("job") > 0 {
				t.Error("something is left")
			}
		})
	}
}

// TestWhoWaitedHereDoesNotGiveUpAtOnce: it was as good as in the queue.
func TestWhoWaitedHereDoesNotGiveUpAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		free := s.Hold("job")
		m := s.Client().Mutex("job", nil)
		ctx, cancel := context.WithCancel(t.Context())
		front, behind := locking(ctx, m), locking(t.Context(), m)
		pass(20 * time.Second)
		s.Down(errors.New("reset"))
		cancel()
		<-front
		pass(2 * time.Second)
		s.Up()
		free()
		end := <-behind
		if end.err != nil {
			t.Fatal(end.err)
		}
		release(t, end.lease)
	})
}
