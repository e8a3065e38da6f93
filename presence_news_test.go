package zamok_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestPresenceIsNotWrittenWithoutNews: that time passes is none, also of what was
// given away.
func TestPresenceIsNotWrittenWithoutNews(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		if _, err := lock(t, c.Mutex("job", &zamok.MutexConfig{TTL: time.Hour})).Detach(); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		before := s.Calls()["announce"]
		for range 1000 { // 10 s
			release(t, lock(t, c.Mutex("x", nil)))
			pass(10 * time.Millisecond)
		}
		if n := s.Calls()["announce"] - before; n > 5 { // but when it looks while x is held
			t.Errorf("said %d times in 10 s what had not changed", n)
		}
	})
}

// TestAWaitThatIsOverSoonIsNotSaid: nor that nothing is held.
func TestAWaitThatIsOverSoonIsNotSaid(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("busy")
		pass(5 * time.Second)
		before := s.Calls()["announce"]
		_, err := s.Client().Mutex("busy", &zamok.MutexConfig{Wait: 100 * time.Millisecond}).Lock(t.Context())
		if !errors.Is(err, zamok.ErrHeld) {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if n := s.Calls()["announce"] - before; n != 0 {
			t.Errorf("said %d times that it holds nothing", n)
		}
	})
}

// TestPresenceIsSaidAgain: what the server did not take is not taken for told.
func TestPresenceIsSaidAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		s.Intercept(func(call driver.Call) memory.Fault {
			if call.Script == lua.Announce {
				return memory.Fault{Err: errors.New("reset")}
			}
			return memory.Fault{}
		})
		lock(t, c.Mutex("job", nil))
		pass(2 * time.Second)
		s.Intercept(nil)
		pass(6 * time.Second)
		if !strings.Contains(fmt.Sprint(s.Keys()), c.ID()) {
			t.Error("not listed 6 s after the trouble")
		}
	})
}

// TestOneHolderIsLookedUpOnce: what it says names all that it holds.
func TestOneHolderIsLookedUpOnce(t *testing.T) {
	bubble(t, &zamok.Config{Name: "mailer"}, func(t *testing.T, s *zamoktest.Server) {
		c, loser := s.Client(), s.Client()
		for i := range 100 {
			lock(t, c.Mutex(fmt.Sprint(i), &zamok.MutexConfig{Reason: fmt.Sprint("mail ", i)}))
		}
		pass(5 * time.Second)
		for i := range 100 {
			_, err := loser.Mutex(fmt.Sprint(i), nil).TryLock(t.Context())
			var held *zamok.HeldError
			if !errors.As(err, &held) || held.Service != "mailer" || held.Reason != fmt.Sprint("mail ", i) {
				t.Fatal(err)
			}
		}
		if n := s.Calls()["whois"]; n != 1 {
			t.Errorf("looked up %d times", n)
		}
		// One that is new is named within a second.
		lock(t, c.Mutex("new", &zamok.MutexConfig{Reason: "new mail"}))
		for range 100 {
			_, _ = loser.Mutex("new", nil).TryLock(t.Context())
		}
		pass(2 * time.Second)
		if _, err := loser.Mutex("new", nil).TryLock(t.Context()); !strings.Contains(err.Error(), "new mail") {
			t.Error(err)
		}
		if n := s.Calls()["whois"]; n > 3 {
			t.Errorf("looked up %d times", n)
		}
	})
}
