package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// bubble runs a test in virtual time. At its end no goroutine may be left: that
// is what synctest itself demands.
func bubble(t *testing.T, cfg *zamok.Config, f func(t *testing.T, s *zamoktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, zamoktest.New(t, cfg)) })
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

func lock(t *testing.T, m *zamok.Mutex) *zamok.Lease {
	t.Helper()
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return l
}

func release(t *testing.T, l *zamok.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func TestLockAndRelease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("report", nil)
		first := lock(t, m)
		if v, _ := s.Get("lock:report"); v != fmt.Sprintf("%s:%d", first.Token(), first.Fence()) {
			t.Errorf("the key is %q, want TOKEN:FENCE", v)
		}
		if ttl, _ := s.TTL("lock:report"); ttl != 15*time.Second {
			t.Errorf("TTL %v, want 15s", ttl)
		}
		if left := time.Until(first.Deadline()); left < 14*time.Second || left >= 15*time.Second {
			t.Errorf("deadline in %v, want a little less than 15s", left)
		}
		release(t, first)
		if s.Type("lock:report") != "none" {
			t.Error("the key is left after Release")
		}
		second := lock(t, m)
		if second.Fence() <= first.Fence() || second.Token() == first.Token() {
			t.Errorf("fences %d, %d, tokens %s, %s", first.Fence(), second.Fence(), first.Token(), second.Token())
		}
		release(t, second)
	})
}

func TestTryLockSaysWhoHolds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		holder := lock(t, s.Client().Mutex("report", nil))
		pass(3 * time.Second)
		_, err := s.Client().Mutex("report", nil).TryLock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || !errors.Is(err, zamok.ErrHeld) {
			t.Fatalf("TryLock: %v, want a *HeldError", err)
		}
		if held.Holder.Token != holder.Token() || held.Fence != holder.Fence() || held.Since != 3*time.Second || held.TTL != 12*time.Second {
			t.Errorf("got %+v", held)
		}
		for _, part := range []string{`"report"`, "pid ", "for 3s", "12s left", fmt.Sprint(holder.Fence())} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	})
}

func TestHandOverTakesOneRequest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(20 * time.Millisecond)
		first := lock(t, s.Client().Mutex("job", nil))
		var second *zamok.Lease
		var at time.Time
		var wg sync.WaitGroup
		waiter := s.Client().Mutex("job", nil)
		wg.Go(func() {
			second = lock(t, waiter)
			at = time.Now()
		})
		pass(time.Second)
		synctest.Wait()
		before := s.Calls()
		released := time.Now()
		release(t, first)
		wg.Wait()
		// A request to the server and a message from it: one round trip.
		if got := at.Sub(released); got != 40*time.Millisecond {
			t.Errorf("handed over after %v, want one round trip, 40ms", got)
		}
		if after := s.Calls(); after["acquire"] != before["acquire"] {
			t.Errorf("%d requests of the waiter, want none", after["acquire"]-before["acquire"])
		}
		if second.Fence() <= first.Fence() {
			t.Error("the fence did not grow")
		}
		// The head was given 2 s, which its first renewal raises.
		pass(time.Second)
		if ttl, _ := s.TTL("lock:job"); ttl < 14*time.Second {
			t.Errorf("TTL %v after the first renewal, want the whole", ttl)
		}
		release(t, second)
	})
}

func TestWaitersComeInOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		holder := lock(t, s.Client().Mutex("job", nil))
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			m := s.Client().Mutex("job", nil)
			wg.Go(func() {
				l := lock(t, m)
				order = append(order, i) // guarded by the lock that is tested
				pass(100 * time.Millisecond)
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

func TestCase08LongWorkOutlivesItsTTL(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		err := s.Client().Mutex("job", nil).Do(t.Context(), func(ctx context.Context) error {
			rival := s.Client().Mutex("job", nil)
			for range 100 {
				pass(100 * time.Millisecond)
				if _, err := rival.TryLock(ctx); !errors.Is(err, zamok.ErrHeld) {
					t.Errorf("a second runner: %v", err)
				}
			}
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestCrashedHolderCostsItsTTL(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		ctx, crash := context.WithCancel(t.Context())
		if _, err := s.Client().Mutex("job", nil).Lock(ctx); err != nil {
			t.Fatal(err)
		}
		crash() // ends renewal, as a crash does
		start := time.Now()
		l := lock(t, s.Client().Mutex("job", nil))
		if took := time.Since(start); took < 14*time.Second || took > 15*time.Second+50*time.Millisecond {
			t.Errorf("free after %v, want the TTL of 15s", took)
		}
		release(t, l)
	})
}

func TestCase14ReleaseTellsFourResults(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		_, err := c.Mutex("never", nil).Resume(t.Context(), "z1/h/1/abc/1")
		var lost *zamok.LostError
		if !errors.As(err, &lost) || lost.Reason != zamok.LostExpired {
			t.Errorf("never held: %v", err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		expired, err := c.Mutex("expired", nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		pass(16 * time.Second)
		if err := expired.Release(t.Context()); !errors.As(err, &lost) || lost.Reason != zamok.LostExpired {
			t.Errorf("expired: %v", err)
		}

		taken := lock(t, c.Mutex("taken", nil))
		s.Set("lock:taken", "z1/other/7/abc/1:9000000000000000", time.Minute)
		if err := taken.Release(t.Context()); !errors.As(err, &lost) || lost.Reason != zamok.LostTaken || lost.By.Host != "other" || lost.By.PID != 7 {
			t.Errorf("taken: %v", err)
		}
		if v, _ := s.Get("lock:taken"); !strings.Contains(v, "other") {
			t.Errorf("the release touched another's lock: %q", v)
		}

		twice := lock(t, c.Mutex("twice", nil))
		release(t, twice)
		if err := twice.Release(t.Context()); !errors.Is(err, zamok.ErrReleased) {
			t.Errorf("twice: %v", err)
		}
	})
}

func TestCase15CancelWhileWaiting(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("job")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		m := s.Client().Mutex("job", nil)
		go func() {
			_, err := m.Lock(ctx)
			done <- err
		}()
		synctest.Wait()
		if n := s.ZCard("zamok:queue:{lock:job}"); n != 1 {
			t.Fatalf("%d in the queue, want 1", n)
		}
		cancel()
		err := <-done
		if !errors.Is(err, context.Canceled) || !errors.Is(err, zamok.ErrHeld) || !strings.Contains(err.Error(), "not acquired") {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if n := s.ZCard("zamok:queue:{lock:job}"); n != 0 {
			t.Errorf("%d in the queue after the cancellation", n)
		}
	})
}

func TestCase17BadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		cases := map[string]struct {
			name string
			cfg  *zamok.MutexConfig
		}{
			"name":                 {"", nil},
			"name ":                {"a\x00b", nil},
			"name  ":               {strings.Repeat("x", 10<<10), nil},
			"MutexConfig.TTL":      {"n", &zamok.MutexConfig{TTL: -1}},
			"MutexConfig.TTL ":     {"n", &zamok.MutexConfig{TTL: time.Microsecond}},
			"MutexConfig.TTL  ":    {"n", &zamok.MutexConfig{TTL: 25 * time.Hour}},
			"MutexConfig.Wait":     {"n", &zamok.MutexConfig{Wait: -1}},
			"MutexConfig.MinHold":  {"n", &zamok.MutexConfig{MinHold: -1}},
			"MutexConfig.MaxHold":  {"n", &zamok.MutexConfig{MaxHold: time.Millisecond}},
			"MutexConfig.MaxHold ": {"n", &zamok.MutexConfig{MaxHold: math.MaxInt64}},
			"MutexConfig.Grace":    {"n", &zamok.MutexConfig{Grace: 10 * time.Second}},
			"MutexConfig.Reason":   {"n", &zamok.MutexConfig{Reason: strings.Repeat("x", 300)}},
			"MutexConfig.MinHold ": {"n", &zamok.MutexConfig{MinHold: 48 * time.Hour}},
		}
		for field, tt := range cases {
			m := c.Mutex(tt.name, tt.cfg)
			_, err := m.Lock(t.Context())
			_, err2 := m.TryLock(t.Context())
			err3 := m.Do(t.Context(), func(context.Context) error { t.Error("f ran"); return nil })
			for _, err := range []error{err, err2, err3} {
				var bad *zamok.ConfigError
				if !errors.As(err, &bad) || bad.Field != strings.TrimSpace(field) {
					t.Errorf("%s: %v", field, err)
				}
			}
		}
		l := lock(t, c.Mutex("n", nil))
		synctest.Wait()
		calls := fmt.Sprint(s.Calls())
		var bad *zamok.ConfigError
		for _, d := range []time.Duration{0, -1, time.Microsecond} {
			if err := l.Extend(t.Context(), d); !errors.As(err, &bad) || bad.Field != "duration" {
				t.Errorf("Extend(%v): %v", d, err)
			}
		}
		if _, err := c.Mutex("n", nil).Resume(t.Context(), "nonsense"); !errors.As(err, &bad) || bad.Field != "token" {
			t.Errorf("Resume: %v", err)
		}
		if got := fmt.Sprint(s.Calls()); got != calls {
			t.Errorf("sent %s, before %s", got, calls)
		}
		release(t, l)
	})
	for field, cfg := range map[string]*zamok.Config{
		"Config.TTL":    {TTL: time.Millisecond},
		"Config.Prefix": {Prefix: "a{b"},
		"Config.GiveUp": {GiveUp: -1},
		"Config.Name":   {Name: strings.Repeat("x", 300)},
	} {
		var bad *zamok.ConfigError
		if _, err := zamok.New(zamoktest.New(t, nil), cfg); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestNestedLockIsRefused(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		err := c.Mutex("a", nil).Do(t.Context(), func(ctx context.Context) error {
			if l := zamok.LeaseFrom(ctx); l == nil || l.Name() != "a" {
				t.Errorf("LeaseFrom = %v", l)
			}
			return c.Mutex("b", nil).Do(ctx, func(ctx context.Context) error {
				_, err := c.Mutex("a", nil).Lock(ctx)
				if err == nil || !strings.Contains(err.Error(), "would wait for itself") {
					t.Errorf("nested Lock: %v", err)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestDoReleasesOnErrorAndPanic(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		boom := errors.New("boom")
		if err := m.Do(t.Context(), func(context.Context) error { return boom }); !errors.Is(err, boom) || errors.Is(err, zamok.ErrLost) {
			t.Errorf("Do = %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = m.TryDo(t.Context(), func(context.Context) error { panic("boom") })
		}()
		if s.Type("lock:job") != "none" {
			t.Error("the lock is held after a panic")
		}
	})
}

func TestSilentOnSuccess(t *testing.T) {
	var log strings.Builder
	cfg := &zamok.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := lock(t, m)
		pass(time.Minute)
		release(t, l)
	})
	if log.Len() > 0 {
		t.Errorf("logged:\n%s", log.String())
	}
}
