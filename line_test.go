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

// TestALinePassesNobodyAfterTheClockWentBack: who stands in the queue has a ticket from
// before, and would be passed by all tickets of the server's clock.
func TestALinePassesNobodyAfterTheClockWentBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		ours, theirs := s.Client().Mutex("job", nil), s.Client().Mutex("job", nil)
		holder := lock(t, ours)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var busy sync.WaitGroup
		for range 4 {
			busy.Go(func() {
				for ctx.Err() == nil {
					l, err := ours.Lock(ctx)
					if err != nil {
						return
					}
					pass(3 * time.Millisecond)
					release(t, l)
				}
			})
		}
		pass(time.Second)
		got := locking(t.Context(), theirs)
		s.Step(-time.Hour)
		start := time.Now()
		release(t, holder)
		end := <-got // of the busy ones all ask and none has it for long
		if took := end.at.Sub(start); end.err != nil || took > time.Second {
			t.Errorf("after %v: %v", took, end.err)
		}
		release(t, end.lease)
		stop()
		busy.Wait()
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

// TestADeadlockInALineIsFound: who waits here waits by the front's entry in the queue,
// and says under what.
func TestADeadlockInALineIsFound(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		client, rival := s.Client(), s.Client()
		ours, theirs := lock(t, client.Mutex("a", nil)), lock(t, rival.Mutex("b", nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		front := locking(ctx, client.Mutex("b", nil))
		under, stop := context.WithCancel(ours.Context())
		defer stop()
		behind := locking(under, client.Mutex("b", nil))
		pass(time.Second)
		synctest.Wait()
		r := said(t, s, client.ID())
		if len(r.Waits) != 1 || len(r.Waits[0].Under) != 1 || r.Held[0].Token != r.Waits[0].Under[0][strings.LastIndex(r.Waits[0].Under[0], "/")+1:] {
			t.Errorf("it says %+v", r)
		}
		stop()
		<-behind
		pass(time.Second)
		synctest.Wait()
		if r := said(t, s, client.ID()); len(r.Waits) != 1 || len(r.Waits[0].Under) != 0 {
			t.Errorf("it says %+v", r)
		}
		cancel()
		<-front
		release(t, ours)
		release(t, theirs)
	})
}

// TestTryLockDoesNotPassALine.
func TestTryLockDoesNotPassALine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := turn(t, m)
		next := waiting(t, m)
		_, err := m.TryLock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Holder.Token != l.Token() {
			t.Errorf("err = %v", err)
		}
		release(t, l)
		release(t, <-next)
	})
}
