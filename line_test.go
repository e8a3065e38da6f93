package zamok_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// locking is a Lock that may fail: what comes of it is sent once it returns.
func locking(ctx context.Context, m *zamok.Mutex) <-chan outcome {
	got := make(chan outcome, 1)
	go func() {
		l, err := m.Lock(ctx)
		got <- outcome{l, err, time.Now()}
	}()
	synctest.Wait()
	return got
}

type outcome struct {
	lease *zamok.Lease
	err   error
	at    time.Time
}

func TestALineIsServedInOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		holder := lock(t, m)
		var order []int
		var last int64
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				l := lock(t, m)
				order = append(order, i) // guarded by the lock that is tested
				if l.Fence() <= last {
					t.Errorf("fence %d after %d", l.Fence(), last)
				}
				last = l.Fence()
				pass(time.Duration(i%7) * time.Millisecond)
				release(t, l)
			})
			synctest.Wait()
		}
		if n := s.Waiters("job"); n != 1 {
			t.Errorf("%d at the server, want the front alone", n)
		}
		release(t, holder)
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
	})
}

// TestWaitingHereKeepsThePlace: those of two processes are served in the order in
// which they came, whoever waited at the server and whoever only here.
func TestWaitingHereKeepsThePlace(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		ours, theirs := s.Client(), s.Client()
		holder := lock(t, ours.Mutex("job", nil))
		var order []int
		var wg sync.WaitGroup
		for i := range 12 {
			m := ours.Mutex("job", nil)
			if i%3 == 2 {
				m = theirs.Mutex("job", nil)
			}
			wg.Go(func() {
				l := lock(t, m)
				order = append(order, i)
				pass(10 * time.Millisecond) // longer than a turn
				release(t, l)
			})
			synctest.Wait()
			pass(time.Millisecond)
		}
		release(t, holder)
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
	})
}

// TestOneThatWaitsHereGoesAway without a trace, and is told who has the lock.
func TestOneThatWaitsHereGoesAway(t *testing.T) {
	bubble(t, &zamok.Config{Name: "mailer"}, func(t *testing.T, s *zamoktest.Server) {
		client := s.Client()
		l := turn(t, client.Mutex("job", &zamok.MutexConfig{Reason: "sending"}))
		pass(time.Millisecond)
		ctx, cancel := context.WithCancelCause(t.Context())
		first := locking(ctx, client.Mutex("job", nil))
		second := locking(t.Context(), client.Mutex("job", &zamok.MutexConfig{Wait: time.Millisecond}))
		third := locking(t.Context(), client.Mutex("job", nil))
		n := sent(s, func() {
			pass(time.Millisecond)
			synctest.Wait()
			cancel(errors.New("the user left"))
			synctest.Wait()
		})
		if len(n) > 0 {
			t.Errorf("sent %v, want nothing", n)
		}
		for place, c := range []struct {
			got    outcome
			ctxErr error
		}{{<-first, context.Canceled}, {<-second, nil}} {
			var held *zamok.HeldError
			if !errors.As(c.got.err, &held) || !errors.Is(c.got.err, zamok.ErrHeld) || c.ctxErr != nil && !errors.Is(c.got.err, c.ctxErr) {
				t.Fatalf("err = %v", c.got.err)
			}
			if held.Holder.Client != client.ID() || held.Fence != l.Fence() || held.Since.Round(time.Microsecond) != 2*time.Millisecond || held.Service != "mailer" ||
				held.Reason != "sending" || held.Waited != time.Millisecond || held.Place != place+1 || held.TTL < time.Second || held.TTL > 2*time.Second {
				t.Errorf("got %+v", held)
			}
		}
		release(t, l)
		release(t, (<-third).lease)
		if s.Held("job") || s.Waiters("job") > 0 {
			t.Error("something is left")
		}
	})
}

// TestBehindAFrontOneKnowsWhatItKnows: while another process has the lock.
func TestBehindAFrontOneKnowsWhatItKnows(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		client, rival := s.Client(), s.Client()
		l := lock(t, rival.Mutex("job", nil))
		pass(time.Second)
		front := waiting(t, client.Mutex("job", nil))
		got := locking(t.Context(), client.Mutex("job", &zamok.MutexConfig{Wait: 3 * time.Second}))
		end := <-got
		var held *zamok.HeldError
		if !errors.As(end.err, &held) || held.Holder.Client != rival.ID() || held.Fence != l.Fence() || held.Since.Round(time.Millisecond) != 4*time.Second || held.Place != 2 || held.Waited != 3*time.Second {
			t.Errorf("err = %v: since %v, place %d, waited %v", end.err, held.Since, held.Place, held.Waited)
		}
		release(t, l)
		release(t, <-front)
	})
}

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
		<-l.Context().Done() // the client listens, since it has waited
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

// TestTheModeOfATokenIsFixed: an attempt that asks again, asks for the same.
func TestTheModeOfATokenIsFixed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		modes := map[string]map[string]bool{} // by token
		var mu sync.Mutex
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "acquire" {
				mu.Lock()
				defer mu.Unlock()
				if modes[c.Args[0]] == nil {
					modes[c.Args[0]] = map[string]bool{}
				}
				modes[c.Args[0]][c.Args[4]] = true
			}
			return memory.Fault{}
		})
		m := s.Client().Mutex("job", nil)
		alone := waiting(t, m) // a held lock, and nobody else
		l := <-alone
		front := waiting(t, m)
		pass(10 * time.Second)
		more := waiting(t, m)
		pass(10 * time.Second)
		for _, next := range []<-chan *zamok.Lease{front, more} {
			release(t, l)
			l = <-next
		}
		release(t, l)
		blocks := 0
		for token, of := range modes {
			if len(of) != 1 {
				t.Errorf("%s asked as %v", token, of)
			}
			if of["W"] {
				blocks++
			}
		}
		if len(modes) != 2 || blocks != 1 {
			t.Errorf("%v", modes)
		}
	})
}

// TestFencesDoNotRunAhead of the server's clock, however short the turns are: what
// rests on the clock rests on that.
func TestFencesDoNotRunAhead(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		a, b := s.Client().Mutex("job", nil), s.Client().Mutex("job", nil)
		var wg sync.WaitGroup
		for _, m := range []*zamok.Mutex{a, a, b, b} {
			wg.Go(func() {
				for range 2000 {
					l := lock(t, m)
					if ahead := l.Fence() - s.Now(); ahead > 2*(4096+1000) { // each client knows of its own
						t.Errorf("%d µs ahead", ahead)
					}
					pass(10 * time.Microsecond)
					release(t, l)
					pass(300 * time.Microsecond)
				}
			})
		}
		wg.Wait()
	})
}

// TestManyWaitHere: neither a goroutine nor a request for each.
func TestManyWaitHere(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		const many = 10000
		client := s.Client()
		m := client.Mutex("job", nil)
		l := turn(t, m)
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				l := lock(t, m)
				pass(time.Microsecond) // else the fences would be ahead of the clock
				release(t, l)
			})
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before - many; n > 0 {
			t.Errorf("%d goroutines more", n)
		}
		n := sent(s, func() {
			release(t, l)
			wg.Wait()
		})
		if n["acquire"] > 10 || n["release"] > 10 {
			t.Errorf("sent %v", n)
		}
		for i := range many {
			m := client.Mutex(strconv.Itoa(i), nil)
			for range 3 {
				wg.Go(func() { release(t, lock(t, m)) })
			}
		}
		wg.Wait()
	})
}
