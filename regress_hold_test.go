package zamok_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// a lock that is granted while Close runs.
func TestCloseInFlight(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(50 * time.Millisecond)
		c := s.Client()
		type res struct {
			l   *zamok.Lease
			err error
		}
		got := make(chan res, 1)
		go func() {
			l, err := c.Mutex("a", nil).TryLock(context.Background())
			got <- res{l, err}
		}()
		pass(60 * time.Millisecond) // granted, the reply is on its way
		if err := c.Close(); err != nil {
			t.Log("close", err)
		}
		r := <-got
		t.Log("TryLock:", r.l != nil, r.err, "key:", s.Type("lock:a"))
		if r.err == nil {
			pass(time.Hour)
			select {
			case <-r.l.Context().Done():
			default:
				t.Error("an hour later its context has not ended")
			}
		}
		if s.Type("lock:a") != "none" {
			t.Error("not released")
		}
	})
}

type blockingHandler struct {
	slog.Handler
	f func(string)
}

func (h blockingHandler) Handle(ctx context.Context, r slog.Record) error {
	h.f(r.Message)
	return nil
}
func (h blockingHandler) Enabled(context.Context, slog.Level) bool { return true }

// a logger that blocks. Real time: a mutex held across a wait stops virtual time.
func TestLoggerBlocks(t *testing.T) {
	cfg := &zamok.Config{TTL: time.Second, Logger: slog.New(blockingHandler{f: func(m string) {
		if strings.Contains(m, "renewal failed") {
			pass(3 * time.Second)
		}
	}})}
	s := zamoktest.New(t, cfg)
	l := lock(t, s.Client().Mutex("a", nil))
	other := s.Client()
	s.Intercept(func(c driver.Call) memory.Fault {
		return memory.Fault{DropRequest: c.Script.Name() == "renew"}
	})
	start := time.Now()
	rival := lock(t, other.Mutex("a", nil))
	t.Log("the rival holds after", time.Since(start))
	select {
	case <-l.Context().Done():
	default:
		t.Error("two holders: the context of the first has not ended")
	}
	<-l.Context().Done()
	t.Log("the first was told after", time.Since(start))
	s.Intercept(nil)
	_ = rival
}

func TestLoggerDelaysOthers(t *testing.T) {
	cfg := &zamok.Config{TTL: 3 * time.Second, Logger: slog.New(blockingHandler{f: func(m string) {
		if strings.Contains(m, "lease lost") {
			pass(time.Second)
		}
	}})}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		start := time.Now()
		var wg sync.WaitGroup
		for _, n := range []string{"a", "b", "c", "d"} {
			l := lock(t, c.Mutex(n, &zamok.MutexConfig{MaxHold: time.Minute}))
			wg.Go(func() {
				<-l.Context().Done()
				if took := time.Since(start); took > time.Minute {
					t.Errorf("%s: told after %v", l.Name(), took)
				}
			})
		}
		wg.Wait()
	})
}

// Detach, then the late message of the hand-over.
func TestDetachLateMessage(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		c := s.Client()
		got := waiting(t, c.Mutex("job", nil))
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Delay: 3 * time.Second} })
		pass(1750 * time.Millisecond)
		release(t, first)
		l := <-got // by poll
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		tok, err := l.Detach()
		if err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if _, err := s.Client().Mutex("job", nil).Resume(t.Context(), tok); err != nil {
			t.Errorf("Resume of a lock detached with a minute left, 5 s later: %v", err)
		}
	})
}

func TestMaxHoldShort(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{MaxHold: time.Second}))
		if err := l.Err(); err != nil {
			t.Error("at once:", err)
		}
	})
}

// real time
func TestReleaseSpinsAfterClose(t *testing.T) {
	s := zamoktest.New(t, &zamok.Config{GiveUp: time.Second})
	var n atomic.Int64
	c := s.Client()
	l := lock(t, c.Mutex("a", nil))
	s.Intercept(func(c driver.Call) memory.Fault {
		n.Add(1)
		return memory.Fault{Err: errors.New("connection refused")}
	})
	done := make(chan error)
	go func() { done <- l.Release(context.Background()) }()
	pass(20 * time.Millisecond)
	_ = c.Close()
	err := <-done
	if n.Load() > 50 {
		t.Errorf("%d calls in a second: %v", n.Load(), err)
	}
	s.Intercept(nil)
}

func TestHandedOverOneLostRenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		release(t, first)
		l := <-got
		var n atomic.Int32
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "renew" {
				return memory.Fault{DropRequest: n.Add(1) == 1}
			}
			return memory.Fault{}
		})
		start := time.Now()
		select {
		case <-l.Context().Done():
			t.Errorf("lost after %v and %d tries: %v", time.Since(start), n.Load(), context.Cause(l.Context()))
		case <-time.After(10 * time.Second):
			release(t, l)
		}
	})
}

func TestMinHoldMaxHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("cron", &zamok.MutexConfig{MinHold: time.Minute, MaxHold: 20 * time.Second})
		err := m.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil })
		t.Log(err)
		synctest.Wait()
		pass(10 * time.Second)
		if l, err := s.Client().Mutex("cron", nil).TryLock(t.Context()); err == nil {
			t.Error("30 s after the start the second host runs it too; MinHold is a minute")
			_ = l
		}
	})
}

func TestDoNil(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		err := s.Client().Mutex("job", nil).Do(t.Context(), func(ctx context.Context) error {
			l := zamok.LeaseFrom(ctx)
			defer l.Release(ctx)
			s.Lose("job")
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Do = %v although the lease was lost while f ran", err)
		}
	})
}

// a library that repeats.
type twice struct{ driver.Driver }

func (d *twice) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script.Name() == "release" {
		_, _ = d.Driver.Eval(ctx, call)
	}
	return d.Driver.Eval(ctx, call)
}

func TestLibraryRepeatsRelease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c, _ := zamok.New(&twice{s}, nil)
		defer c.Close()
		l := lock(t, c.Mutex("job", nil))
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		lock(t, c.Mutex("a", nil))
		s.Hang()
		go func() { _, _ = c.Mutex("b", nil).TryLock(context.Background()) }()
		pass(100 * time.Millisecond)
		start := time.Now()
		_ = c.Close()
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
	})
}

// presence written after Close.
func TestPresenceAfterClose(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		n := 0
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "announce" {
				if n++; n == 1 {
					return memory.Fault{Delay: 20 * time.Millisecond}
				}
			}
			return memory.Fault{}
		})
		lock(t, c.Mutex("a", nil))
		synctest.Wait()
		_ = c.Close()
		pass(time.Second)
		if s.Type("zamok:proc:"+c.ID()) != "none" {
			t.Error("the client's key is left after Close")
		}
	})
}

// server errors that pass, to Run.
func TestRunTransient(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		s.Intercept(func(driver.Call) memory.Fault {
			return memory.Fault{Err: &driver.ServerError{Text: "LOADING Redis is loading the dataset in memory"}}
		})
		_, err := l.Run(t.Context(), zamok.NewScript("set", "return 1"), nil)
		if !errors.Is(err, zamok.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		s.Intercept(nil)
	})
}

func TestALossStaysALoss(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		s.Lose("job")
		lost := lossOf(t, l)
		for range 2 {
			if err := l.Release(t.Context()); err != error(lost) {
				t.Errorf("Release: %v", err)
			}
		}
		if l.Err() != error(lost) || context.Cause(l.Context()) != error(lost) {
			t.Errorf("Err %v, cause %v", l.Err(), context.Cause(l.Context()))
		}
	})
}
