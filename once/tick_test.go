package once_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

func job(t *testing.T, s *zamoktest.Server, cfg *once.JobConfig) *once.Job {
	t.Helper()
	j, err := once.NewJob(s.Client(), "report", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// tick is a function of Tick that takes d.
func (th *thing) tick(d time.Duration) func(context.Context, once.Run) error {
	f := th.work(d, "", nil)
	return func(ctx context.Context, run once.Run) error {
		_, err := f(ctx, run)
		return err
	}
}

func mustNotTick(t *testing.T) func(context.Context, once.Run) error {
	return func(context.Context, once.Run) error {
		t.Error("it ran")
		return nil
	}
}

func skipped(t *testing.T, err, reason error) *once.SkippedError {
	t.Helper()
	var e *once.SkippedError
	if !errors.As(err, &e) || !errors.Is(err, reason) || e.Job != "report" {
		t.Fatalf("got %v, want a *SkippedError for %v", err, reason)
	}
	return e
}

// Hosts whose clocks differ by up to 50 s call for the same nominal times. Each has
// one run, and two never overlap.
func TestOneRunANominalTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		const minutes = 30
		start := time.Now().Truncate(time.Minute).Add(time.Hour)
		runs := map[string]int{}
		ids := map[string]bool{}
		var mu sync.Mutex
		var th thing
		var hosts sync.WaitGroup
		for host := range 5 {
			j, skew := job(t, s, nil), time.Duration(host-2)*25*time.Second
			hosts.Go(func() {
				for i := range minutes {
					nominal := start.Add(time.Duration(i) * time.Minute)
					pass(time.Until(nominal.Add(skew)))
					err := once.Tick(t.Context(), j, nominal, func(ctx context.Context, run once.Run) error {
						mu.Lock()
						runs[nominal.String()]++
						ids[run.ID] = true
						mu.Unlock()
						if run.Key != "report@"+nominal.Format(time.RFC3339) || run.Attempt != 1 {
							t.Errorf("run %+v", run)
						}
						return th.tick(20*time.Second)(ctx, run)
					})
					if err != nil {
						skipped(t, err, once.ErrTaken)
					}
				}
			})
		}
		hosts.Wait()
		if len(runs) != minutes || len(ids) != minutes || th.begun.Load() != minutes || th.most.Load() != 1 {
			t.Errorf("%d times had %d runs, %d ids, %d at a time", len(runs), th.begun.Load(), len(ids), th.most.Load())
		}
	})
}

func TestOverlapIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		now := time.Now()
		a, b := job(t, s, nil), job(t, s, nil)
		var th thing
		ended := make(chan error, 1)
		go func() { ended <- once.Tick(t.Context(), a, now, th.tick(10*time.Minute)) }()
		s.AwaitHeld("tick/report")
		synctest.Wait()
		e := skipped(t, once.Tick(t.Context(), b, now, mustNotTick(t)), once.ErrTaken)
		if !e.Newest.Equal(now) || e.By.PID == 0 || !strings.Contains(e.Error(), "has had its run, by") {
			t.Errorf("the same time: %+v, %v", e, e)
		}
		pass(time.Minute)
		e = skipped(t, once.Tick(t.Context(), b, now.Add(time.Minute), mustNotTick(t)), once.ErrOverlap)
		if e.By.PID == 0 || !strings.Contains(e.Error(), "earlier run goes on") {
			t.Errorf("the next time: %+v, %v", e, e)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// A time that was refused has had no run.
		if err := once.Tick(t.Context(), b, now.Add(time.Minute), th.tick(0)); err != nil {
			t.Error(err)
		}
		e = skipped(t, once.Tick(t.Context(), a, now, mustNotTick(t)), once.ErrTaken)
		if !e.Newest.Equal(now.Add(time.Minute)) || !strings.Contains(e.Error(), "late") {
			t.Errorf("a late one: %+v, %v", e, e)
		}
	})
}

// A host whose clock is wrong does not take the coming times away from the others.
func TestWrongClock(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		now := time.Now()
		var th thing
		e := skipped(t, once.Tick(t.Context(), job(t, s, nil), now.Add(24*time.Hour), mustNotTick(t)), once.ErrAhead)
		if e.Early < 23*time.Hour || e.Early > 24*time.Hour || !strings.Contains(e.Error(), "clock") {
			t.Errorf("%+v, %v", e, e)
		}
		if err := once.Tick(t.Context(), job(t, s, nil), now, th.tick(0)); err != nil {
			t.Error(err)
		}
		if err := once.Tick(t.Context(), job(t, s, &once.JobConfig{Ahead: time.Hour}), now.Add(time.Hour), th.tick(0)); err != nil {
			t.Error(err)
		}
	})
}

func TestTickFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		now, bad := time.Now(), errors.New("disk full")
		err := once.Tick(t.Context(), job(t, s, nil), now, func(context.Context, once.Run) error { return once.Again(bad) })
		if !errors.Is(err, bad) {
			t.Errorf("Tick: %v", err)
		}
		skipped(t, once.Tick(t.Context(), job(t, s, nil), now, mustNotTick(t)), once.ErrTaken)
		func() {
			defer func() { _ = recover() }()
			_ = once.Tick(t.Context(), job(t, s, nil), now.Add(time.Minute), func(context.Context, once.Run) error { panic("oh") })
		}()
		if s.Held("tick/report") || s.Held("ticks/report") {
			t.Error("a lock is left")
		}
		pass(time.Minute)
		err = once.Tick(t.Context(), job(t, s, nil), now.Add(2*time.Minute), func(ctx context.Context, _ once.Run) error {
			s.Lose("tick/report")
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, zamok.ErrLost) {
			t.Errorf("a loss: %v", err)
		}
	})
}

// A run that crashes costs its nominal time, and the next ones until its lease ends.
func TestTickCrashes(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		now := time.Now()
		c := s.Client()
		j, err := once.NewJob(c, "report", nil)
		if err != nil {
			t.Fatal(err)
		}
		var dead thing
		ended := make(chan error, 1)
		go func() { ended <- once.Tick(t.Context(), j, now, dead.tick(time.Hour)) }()
		s.AwaitHeld("tick/report")
		synctest.Wait()
		s.Intercept(func(call driver.Call) memory.Fault { return memory.Fault{DropRequest: ofClient(call, c)} })
		other := job(t, s, nil)
		skipped(t, once.Tick(t.Context(), other, now, mustNotTick(t)), once.ErrTaken)
		skipped(t, once.Tick(t.Context(), other, now.Add(time.Second), mustNotTick(t)), once.ErrOverlap)
		if err := <-ended; !errors.Is(err, zamok.ErrLost) {
			t.Errorf("the one that is cut off: %v", err)
		}
		pass(2 * time.Second)
		skipped(t, once.Tick(t.Context(), other, now, mustNotTick(t)), once.ErrTaken)
		var th thing
		if err := once.Tick(t.Context(), other, now.Add(2*time.Second), th.tick(0)); err != nil || th.begun.Load() != 1 {
			t.Errorf("the next: %v", err)
		}
	})
}

// One request or reply is lost.
func TestTickOneFault(t *testing.T) {
	for _, fault := range []memory.Fault{{DropRequest: true}, {DropReply: true}, {Delay: 3 * time.Second}, {Err: errors.New("cut")}, {DropReply: true, Err: errors.New("cut")}} {
		for _, nth := range []int64{1, 2} {
			bubble(t, func(t *testing.T, s *zamoktest.Server) {
				now := time.Now()
				for i := range 2 { // without a record and with one
					c := s.Client()
					j, err := once.NewJob(c, "report", nil)
					if err != nil {
						t.Fatal(err)
					}
					onSwap(t, s, c, nth, fault)
					var th thing
					nominal := now.Add(time.Duration(i) * time.Second)
					if err := once.Tick(t.Context(), j, nominal, th.tick(0)); err != nil || th.begun.Load() != 1 {
						t.Errorf("%+v at request %d: %v", fault, nth, err)
					}
					s.Intercept(nil)
					skipped(t, once.Tick(t.Context(), job(t, s, nil), nominal, mustNotTick(t)), once.ErrTaken)
				}
			})
		}
	}
}

// Nothing gets through: whether the time is taken is not known, and it did not run.
func TestTickUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		j, err := once.NewJob(c, "report", nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		s.Intercept(func(call driver.Call) memory.Fault {
			if isSwap(call, c) {
				n++
			}
			return memory.Fault{DropReply: isSwap(call, c) && n > 1}
		})
		err = once.Tick(t.Context(), j, time.Now(), mustNotTick(t))
		if !errors.Is(err, zamok.ErrUnknown) || !strings.Contains(err.Error(), "did not run") {
			t.Errorf("Tick: %v", err)
		}
		if s.Held("tick/report") {
			t.Error("the lock of the runs is left")
		}
	})
}

func TestTickMistakes(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		for want, make := range map[string]func() (*once.Job, error){
			"client":               func() (*once.Job, error) { return once.NewJob(nil, "x", nil) },
			"name":                 func() (*once.Job, error) { return once.NewJob(c, "", nil) },
			"once.JobConfig.Ahead": func() (*once.Job, error) { return once.NewJob(c, "x", &once.JobConfig{Ahead: -1}) },
			"MutexConfig.TTL":      func() (*once.Job, error) { return once.NewJob(c, "x", &once.JobConfig{TTL: 1}) },
		} {
			if _, err := make(); field(t, err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if _, err := once.NewJob(c, "a}b", nil); field(t, err) != "name" {
			t.Error(err)
		}
		if _, err := once.NewJob(c, strings.Repeat("x", 506), nil); err != nil {
			t.Errorf("the longest name: %v", err)
		}
		j := job(t, s, nil)
		for want, err := range map[string]error{
			"job":          once.Tick(t.Context(), nil, time.Now(), mustNotTick(t)),
			"function":     once.Tick(t.Context(), j, time.Now(), nil),
			"nominal time": once.Tick(t.Context(), j, time.Time{}, mustNotTick(t)),
		} {
			if field(t, err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		pass(time.Millisecond) // virtual time began in a whole second
		if err := once.Tick(t.Context(), j, time.Now(), mustNotTick(t)); field(t, err) != "nominal time" {
			t.Errorf("time.Now(): %v", err)
		}
		s.Set("zamok:once:{lock:ticks/report}", "{}", time.Hour)
		if err := once.Tick(t.Context(), j, time.Now().Truncate(time.Second), mustNotTick(t)); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("an unknown record: %v", err)
		}
	})
}
