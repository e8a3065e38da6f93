package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

func acquire(t *testing.T, s *zamok.Semaphore) *zamok.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// queueing starts an Acquire and returns when it waits.
func queueing(t *testing.T, s *zamok.Semaphore) <-chan *zamok.Lease {
	t.Helper()
	got := make(chan *zamok.Lease, 1)
	go func() {
		l, err := s.Acquire(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	synctest.Wait()
	return got
}

func wantUsage(t *testing.T, s *zamok.Semaphore, permits, inUse int) {
	t.Helper()
	u, err := s.Usage(t.Context())
	if want := (zamok.Usage{Permits: permits, InUse: inUse}); err != nil || u != want {
		t.Errorf("usage %+v, %v; want %+v", u, err, want)
	}
}

func TestSemaphoreBoundsAndServesInOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		sem := func() *zamok.Semaphore { return s.Client().Semaphore("api", 2, nil) }
		a, b := acquire(t, sem()), acquire(t, sem())
		if b.Fence() <= a.Fence() {
			t.Errorf("fence %d after %d", b.Fence(), a.Fence())
		}
		wantUsage(t, sem(), 2, 2)
		_, err := sem().TryAcquire(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Permits != 2 || held.InUse != 2 || held.Holder.Token != a.Token() && held.Holder.Token != b.Token() {
			t.Fatalf("err = %v", err)
		}
		first, second := queueing(t, sem()), queueing(t, sem())
		if _, err := sem().TryAcquire(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("barged past the queue: %v", err)
		}
		start := time.Now()
		release(t, b)
		c := <-first
		if time.Since(start) > 0 {
			t.Errorf("handed over after %v", time.Since(start))
		}
		select {
		case <-second:
			t.Fatal("a third has a permit")
		default:
		}
		release(t, a)
		d := <-second
		wantUsage(t, sem(), 2, 2)
		pass(time.Minute) // renewed
		for _, l := range []*zamok.Lease{c, d} {
			if err := l.Check(t.Context()); err != nil {
				t.Error(err)
			}
			release(t, l)
		}
		wantUsage(t, sem(), 2, 0)
	})
}

// TestCase38CrashedPermitsComeBack: after one lease, by the server's clock.
func TestCase38CrashedPermitsComeBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		for range 2 {
			if _, err := acquire(t, s.Client().Semaphore("api", 2, nil)).Detach(); err != nil { // nobody renews it
				t.Fatal(err)
			}
		}
		start := time.Now()
		a, b := queueing(t, s.Client().Semaphore("api", 2, nil)), queueing(t, s.Client().Semaphore("api", 2, nil))
		la, lb := <-a, <-b
		if took := time.Since(start); took < 14*time.Second || took > 18*time.Second {
			t.Errorf("back after %v, want one TTL", took)
		}
		if _, err := s.Client().Semaphore("api", 2, nil).TryAcquire(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("a third: %v", err)
		}
		release(t, la)
		release(t, lb)
	})
}

func TestCase39LimitChangesInUse(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		sem := s.Client().Semaphore("api", 5, nil)
		var held []*zamok.Lease
		for range 5 {
			held = append(held, acquire(t, sem))
		}
		if err := sem.SetLimit(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		wantUsage(t, sem, 2, 5)
		var waiters []<-chan *zamok.Lease
		for range 8 {
			waiters = append(waiters, queueing(t, s.Client().Semaphore("api", 5, nil)))
		}
		for i := range 3 { // down to 2, which is the limit
			release(t, held[i])
		}
		pass(10 * time.Second)
		select {
		case <-waiters[0]:
			t.Fatal("a new permit above the limit")
		default:
		}
		if err := sem.SetLimit(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for _, w := range waiters {
			held = append(held, <-w)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("woken after %v", took)
		}
		wantUsage(t, sem, 10, 10)
		if err := sem.SetLimit(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantUsage(t, sem, 5, 10)
		for _, l := range held[3:] {
			release(t, l)
		}
	})
}

func TestSemaphoreNeverMoreThanItsPermits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		var mu sync.Mutex
		in, most := 0, 0
		var done sync.WaitGroup
		for i := range 30 {
			sem := s.Client().Semaphore("api", 3, nil)
			done.Go(func() {
				for range 20 {
					err := sem.Do(t.Context(), func(context.Context) error {
						mu.Lock()
						in++
						most = max(most, in)
						mu.Unlock()
						pass(time.Duration(i) * time.Millisecond)
						mu.Lock()
						in--
						mu.Unlock()
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		if most != 3 {
			t.Errorf("%d at a time, want 3", most)
		}
	})
}

func TestSemaphoreWithLostMessages(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
		l := acquire(t, s.Client().Semaphore("api", 1, nil))
		got := queueing(t, s.Client().Semaphore("api", 1, nil))
		start := time.Now()
		release(t, l)
		release(t, <-got)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%v", took)
		}
	})
}

func TestCancelledAcquireLeavesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := acquire(t, s.Client().Semaphore("api", 1, nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Client().Semaphore("api", 1, nil).Acquire(ctx)
			done <- err
		}()
		synctest.Wait()
		behind := queueing(t, s.Client().Semaphore("api", 1, nil))
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
		pass(100 * time.Millisecond)
		release(t, l)
		release(t, <-behind)
		for _, k := range s.Keys() {
			if k == "semaphore:api" || k == "zamok:queue:{semaphore:api}" {
				t.Errorf("%s is left", k)
			}
		}
	})
}

func TestLostPermit(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		for name, c := range map[string]struct {
			do   func()
			want zamok.LossReason
		}{
			"deleted": {func() { s.Del("semaphore:deleted") }, zamok.LostDeleted},
			"wiped":   {func() { s.Wipe() }, zamok.LostData},
		} {
			l := acquire(t, s.Client().Semaphore(name, 2, nil))
			c.do()
			start := time.Now()
			<-l.Context().Done()
			var lost *zamok.LostError
			if !errors.As(l.Err(), &lost) || lost.Reason != c.want || time.Since(start) > 5*time.Second {
				t.Errorf("%s: %v after %v", name, l.Err(), time.Since(start))
			}
		}
		l := acquire(t, s.Client().Semaphore("down", 2, nil))
		s.Down(errors.New("no route"))
		<-l.Context().Done()
		if time.Now().After(l.Deadline()) {
			t.Error("told after the server may have let go")
		}
		s.Up()
	})
}

func TestGuardedScriptUnderAPermit(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		script := zamok.NewScript("write", `return redis.call('SET', KEYS[1], FENCE)`)
		s.Define(script, func(tx *memory.Tx, keys, _ []string, fence int64) (any, error) {
			return "OK", tx.Set(keys[0], fmt.Sprint(fence), 0)
		})
		l := acquire(t, s.Client().Semaphore("api", 2, nil))
		if _, err := l.Run(t.Context(), script, []string{"k"}); err != nil {
			t.Fatal(err)
		}
		if v, _ := s.Get("k"); v != fmt.Sprint(l.Fence()) {
			t.Errorf("wrote %q", v)
		}
		s.Del("semaphore:api")
		if _, err := l.Run(t.Context(), script, []string{"k"}); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("err = %v", err)
		}
	})
}

func TestTokensOfPermits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		token, err := acquire(t, s.Client().Semaphore("api", 1, nil)).Detach()
		if err != nil {
			t.Fatal(err)
		}
		sem := s.Client().Semaphore("api", 1, nil)
		if err := sem.ExtendToken(t.Context(), token, time.Hour); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Minute)
		wantUsage(t, sem, 1, 1)
		got := queueing(t, s.Client().Semaphore("api", 1, nil))
		if err := sem.ReleaseToken(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		release(t, <-got)
		if err := sem.ReleaseToken(t.Context(), token); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("twice: %v", err)
		}
	})
}

func TestSemaphoreMistakes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		for name, sem := range map[string]*zamok.Semaphore{
			"permits":               c.Semaphore("x", 0, nil),
			"name":                  c.Semaphore("", 1, nil),
			"SemaphoreConfig.TTL":   c.Semaphore("x", 1, &zamok.SemaphoreConfig{TTL: 1}),
			"SemaphoreConfig.Grace": c.Semaphore("x", 1, &zamok.SemaphoreConfig{Grace: -1}),
		} {
			_, err := sem.Acquire(t.Context())
			_, err2 := sem.Usage(t.Context())
			var bad *zamok.ConfigError
			if !errors.As(err, &bad) || bad.Field != name || !errors.Is(err2, err) {
				t.Errorf("%s: %v, %v", name, err, err2)
			}
		}
		sem := c.Semaphore("x", 2, nil)
		err := sem.Do(t.Context(), func(ctx context.Context) error {
			_, err := sem.Acquire(ctx)
			return err
		})
		var bad *zamok.ConfigError
		if !errors.As(err, &bad) {
			t.Errorf("a second permit under the first: %v", err)
		}
		if n := s.Calls()["sem_acquire"]; n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}
