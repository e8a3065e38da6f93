package zamok_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestCase10PausedHolder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		script := zamok.NewScript("set", `return redis.call('SET', KEYS[1], ARGV[1])`)
		ran := 0
		s.Define(script, func(tx *memory.Tx, keys, args []string, fence int64) (any, error) {
			ran++
			return "OK", nil
		})
		var paused atomic.Bool
		s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropRequest: paused.Load()} })
		old := lock(t, s.Client().Mutex("job", nil))
		if _, err := old.Run(t.Context(), script, []string{"data"}, "x"); err != nil || ran != 1 {
			t.Fatalf("Run: %v", err)
		}
		paused.Store(true)
		pass(20 * time.Second)
		paused.Store(false)
		rival := lock(t, s.Client().Mutex("job", nil))
		if rival.Fence() <= old.Fence() {
			t.Error("the rival's fence is not larger")
		}
		if _, err := old.Run(t.Context(), script, []string{"data"}, "y"); !errors.Is(err, zamok.ErrLost) || ran != 1 {
			t.Errorf("the late write: %v", err)
		}
		if err := old.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("the late release: %v", err)
		}
		synctest.Wait()
		if v, _ := s.Get("lock:job"); !strings.HasPrefix(v, rival.Token()+":") {
			t.Errorf("the rival's lock is %q", v)
		}
		release(t, rival)
	})
}

// The token alone refuses a late write, also when the holder's own clock says
// nothing.
func TestGuardedScriptIsRefusedByTheServer(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		script := zamok.NewScript("set", `return redis.call('SET', KEYS[1], ARGV[1])`)
		s.Define(script, func(*memory.Tx, []string, []string, int64) (any, error) {
			t.Error("it ran")
			return nil, nil
		})
		l := lock(t, s.Client().Mutex("job", nil))
		s.Set("lock:job", "z1/other/7/abc/1:9000000000000000", time.Minute)
		_, err := l.Run(t.Context(), script, nil)
		var lost *zamok.LostError
		if !errors.As(err, &lost) || lost.Reason != zamok.LostTaken || lost.By.PID != 7 {
			t.Errorf("Run: %v", err)
		}
		if lossOf(t, l) != lost {
			t.Error("the lease was not told")
		}
	})
}

// A library that sends again what has run may be answered by a server that refuses by then.
func TestRefusalOfWhatALibrarySentAgain(t *testing.T) {
	for _, text := range []string{
		"OOM command not allowed when used memory > 'maxmemory'. script: 5f, on @user_script:1.",
		"NOREPLICAS Not enough good replicas to write.",
		"LOADING Redis is loading the dataset in memory",
	} {
		bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
			script := zamok.NewScript("set", `return redis.call('SET', KEYS[1], ARGV[1])`)
			s.Define(script, func(*memory.Tx, []string, []string, int64) (any, error) { return "OK", nil })
			l := lock(t, s.Client().Mutex("job", nil))
			for delay, unknown := range map[time.Duration]bool{0: false, 10 * time.Millisecond: true} {
				s.Intercept(func(driver.Call) memory.Fault {
					return memory.Fault{Delay: delay, DropReply: unknown, Err: &driver.ServerError{Text: text}}
				})
				if _, err := l.Run(t.Context(), script, []string{"data"}, "x"); err == nil || errors.Is(err, zamok.ErrUnknown) != unknown {
					t.Errorf("%.10s after %v: %v, unknown must be %v", text, delay, err, unknown)
				}
				s.Intercept(nil)
			}
			release(t, l)
		})
	}
}

func TestRunOutcomes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		script := zamok.NewScript("add", `return redis.call('INCRBY', KEYS[1], ARGV[1])`)
		s.Define(script, func(tx *memory.Tx, keys, args []string, fence int64) (any, error) {
			if args[0] == "bad" {
				return nil, errors.New("ERR value is not an integer or out of range")
			}
			return fence, nil
		})
		l := lock(t, s.Client().Mutex("job", nil))
		if v, err := l.Run(t.Context(), script, []string{"n"}, 5); err != nil || v != l.Fence() {
			t.Errorf("Run = %v, %v; want the fence", v, err)
		}
		var refused *zamok.ServerError
		if _, err := l.Run(t.Context(), script, []string{"n"}, "bad"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "not an integer") {
			t.Errorf("a script that fails: %v", err)
		}
		s.Intercept(func(driver.Call) memory.Fault {
			return memory.Fault{DropReply: true, Err: errors.New("connection cut")}
		})
		if _, err := l.Run(t.Context(), script, []string{"n"}, "1"); !errors.Is(err, zamok.ErrUnknown) {
			t.Errorf("a cut reply: %v", err)
		}
		s.Intercept(nil)
		var bad *zamok.ConfigError
		if _, err := l.Run(t.Context(), script, nil, 1.5); !errors.As(err, &bad) || bad.Field != "argument" {
			t.Errorf("a float: %v", err)
		}
		for _, wrong := range []*zamok.Script{zamok.NewScript("", "x"), zamok.NewScript("x", " "), zamok.NewScript("x", "#!lua\nreturn 1")} {
			if _, err := l.Run(t.Context(), wrong, nil); !errors.As(err, &bad) || bad.Field != "script" {
				t.Errorf("script %q: %v", wrong.Name(), err)
			}
		}
		release(t, l)
	})
}

func TestNilIsAMistakeAndNoPanic(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := lock(t, s.Client().Mutex("other", nil))
		_, run := l.Run(t.Context(), nil, nil)
		for _, err := range []error{m.Do(t.Context(), nil), m.TryDo(t.Context(), nil), run} {
			var bad *zamok.ConfigError
			if !errors.As(err, &bad) {
				t.Errorf("err = %v", err)
			}
		}
		release(t, l)
	})
}
