package once_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

func field(t *testing.T, err error) string {
	t.Helper()
	var bad *zamok.ConfigError
	if !errors.As(err, &bad) {
		t.Errorf("got %v, want a *ConfigError", err)
		return ""
	}
	return bad.Field
}

func TestMistakes(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		for want, cfg := range map[string]*once.Config{
			"once.Config.Policy":    nil,
			"once.Config.Retention": {Policy: once.Retry, Retention: time.Millisecond},
			"MutexConfig.TTL":       {Policy: once.Retry, TTL: time.Millisecond},
			"MutexConfig.Wait":      {Policy: once.Retry, Wait: -1},
		} {
			if _, err := once.New(c, cfg); field(t, err) != want {
				t.Errorf("%+v: %v, want %s", cfg, err, want)
			}
		}
		if _, err := once.New(c, &once.Config{}); err == nil || !strings.Contains(err.Error(), "GiveUp") {
			t.Errorf("no policy: %v", err)
		}
		_, err := once.New(nil, nil)
		if field(t, err) != "client" {
			t.Error(err)
		}
		o := on(t, s, once.GiveUp)
		for _, key := range []string{"", "a}b", "a\x00", strings.Repeat("x", 508)} {
			if _, err := once.Do(t.Context(), o, key, mustNotRun(t)); field(t, err) != "key" {
				t.Errorf("key %.9q: %v", key, err)
			}
			if err := o.Forget(t.Context(), key); field(t, err) != "key" {
				t.Errorf("Forget %.9q: %v", key, err)
			}
		}
		var none *once.Once
		_, noOnce := once.Do(t.Context(), none, "k", mustNotRun(t))
		_, noFunction := once.Do[string](t.Context(), o, "k", nil)
		_, noResolve := once.Resolve(t.Context(), none, "k", "")
		for want, err := range map[string]error{"once": errors.Join(noOnce, noResolve, none.Forget(t.Context(), "k")), "function": noFunction} {
			if field(t, err) != want {
				t.Error(err)
			}
		}
		if n := len(s.Keys()); n != 0 {
			t.Errorf("%d keys are there", n)
		}
	})
}

func TestDoWithinItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		o := on(t, s, once.Retry)
		out, err := once.Do(t.Context(), o, "a", func(ctx context.Context, _ once.Run) (string, error) {
			if _, err := once.Do(ctx, o, "a", mustNotRun(t)); field(t, err) != "context" {
				t.Errorf("the same key: %v", err)
			}
			inner, err := once.Do(ctx, o, "b", func(context.Context, once.Run) (string, error) { return "b", nil })
			return "a" + inner.Value, err
		})
		wants(t, out, err, "ab", false, nil)
	})
}

// What another program has written, or a later version, is neither run nor
// overwritten.
func TestUnknownRecord(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		o := on(t, s, once.Retry)
		for _, text := range []string{"hello", `{"v":2,"state":"done"}`, `{"v":1,"state":"odd"}`, "-", "null"} {
			s.Set(recordKey("pay"), text, time.Hour)
			_, err := once.Do(t.Context(), o, "pay", mustNotRun(t))
			if err == nil || !strings.Contains(err.Error(), "another program") {
				t.Errorf("%q: %v", text, err)
			}
			if left, _ := s.Get(recordKey("pay")); left != text || s.Held("once/pay") {
				t.Errorf("%q became %q", text, left)
			}
			if err := o.Forget(t.Context(), "pay"); err != nil || s.Type(recordKey("pay")) != "none" {
				t.Errorf("Forget of %q: %v", text, err)
			}
		}
		s.SetList(recordKey("pay"))
		var refused *zamok.ServerError
		if _, err := once.Do(t.Context(), o, "pay", mustNotRun(t)); !errors.As(err, &refused) || refused.Code != "WRONGTYPE" {
			t.Errorf("a key of another type: %v", err)
		}
		s.Del(recordKey("pay"))
	})
}

func TestForgetAndResolve(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			var th thing
			o := on(t, s, policy)
			if err := o.Forget(t.Context(), "pay"); err != nil {
				t.Errorf("Forget of what is not known: %v", err)
			}
			out, err := once.Resolve(t.Context(), o, "pay", "paid by hand")
			wants(t, out, err, "paid by hand", false, nil)
			out, err = once.Do(t.Context(), o, "pay", mustNotRun(t))
			wants(t, out, err, "paid by hand", true, nil)
			out, err = once.Resolve(t.Context(), o, "pay", "paid twice")
			wants(t, out, err, "paid by hand", true, nil)
			if err := o.Forget(t.Context(), "pay"); err != nil {
				t.Errorf("Forget: %v", err)
			}
			out, err = once.Do(t.Context(), o, "pay", th.work(0, "", once.Final(errors.New("no money"))))
			wants(t, out, err, "", false, err)
			out, err = once.Resolve(t.Context(), o, "pay", "paid after all")
			wants(t, out, err, "paid after all", false, nil)
			if ttl, _ := s.TTL(recordKey("pay")); ttl != 24*time.Hour {
				t.Errorf("it is remembered for %v", ttl)
			}
		})
	})
}

// Another program writes the record while a call has the lock.
func TestRecordChangesUnderTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		n := 0
		other := func(key string, text func(n int) string) {
			s.Intercept(func(call driver.Call) memory.Fault {
				if call.Script.Name() == "guard:zamok.once" {
					n++
					s.Set(key, text(n), time.Hour)
				}
				return memory.Fault{}
			})
		}
		failed := func(n int) string { return fmt.Sprintf(`{"v":1,"state":"again","policy":"retry","attempt":%d}`, n) }
		other(recordKey("pay"), failed)
		o := on(t, s, once.Retry)
		_, do := once.Do(t.Context(), o, "pay", mustNotRun(t))
		_, resolve := once.Resolve(t.Context(), o, "pay", "paid")
		n = 0
		ticks := "zamok:once:{lock:ticks/report}"
		other(ticks, func(n int) string { return fmt.Sprintf(`{"v":1,"newest":%d}`, n) })
		j := job(t, s, nil)
		tick := once.Tick(t.Context(), j, time.Now(), mustNotTick(t))
		for what, err := range map[string]error{"Do": do, "Resolve": resolve, "Tick": tick} {
			if err == nil || !strings.Contains(err.Error(), "another program") {
				t.Errorf("%s: %v", what, err)
			}
		}
		s.Intercept(nil)
		if s.Held("tick/report") {
			t.Error("the lock of the runs is left")
		}
	})
}

// Every error says what happened to which key, and what to do where there is
// something.
func TestErrorTexts(t *testing.T) {
	began := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for want, err := range map[string]error{
		"card refused":         &once.FailedError{Key: "pay", Text: "card refused"},
		"Resolve or Forget":    &once.InterruptedError{Key: "pay", ID: "i-d", Began: began, By: zamok.Holder{Host: "web-3", PID: 7, Token: "t"}},
		"2026-05-04T03:02:01Z": &once.InterruptedError{Key: "pay", Began: began},
		"web-3 pid 7":          &once.InterruptedError{Key: "pay", By: zamok.Holder{Host: "web-3", PID: 7, Token: "t"}},
		"id i-d":               &once.InterruptedError{Key: "pay", ID: "i-d"},
		"outcome unknown":      &once.NotStoredError{Key: "pay", Err: zamok.ErrUnknown},
		"another input":        &once.MismatchError{Key: "pay"},
	} {
		if text := err.Error(); !strings.HasPrefix(text, `zamok: once "pay": `) || !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
