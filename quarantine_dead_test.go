package zamok_test

import (
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

// queued puts 100 waiters first into the only queue, who listen at the inbox if anybody
// does.
func queued(t *testing.T, s *zamoktest.Server, mode, inbox string) {
	t.Helper()
	for _, key := range s.Keys() {
		if strings.HasPrefix(key, "zamok:queue:") {
			for i := range 100 {
				s.ZAdd(key, fmt.Sprintf("%s|z1/h/1/gone/%d|1000|%s", mode, i, inbox), float64(i+1))
			}
			return
		}
	}
	t.Fatal("nobody waits")
}

// mustFollow: the lease comes within so long of the quarantine's end, which is at.
func mustFollow(t *testing.T, within time.Duration, at time.Time, granted <-chan *zamok.Lease) {
	t.Helper()
	l := <-granted
	if late := time.Since(at); late < 0 || late > within {
		t.Errorf("granted %v after the quarantine, want within %v", late, within)
	}
	if l != nil {
		release(t, l)
	}
}

// TestTheDeadInQuarantine: who stands behind many dead when it ends does not wait for
// each of them, whatever is freed meanwhile, and however.
func TestTheDeadInQuarantine(t *testing.T) {
	type client = zamok.Client
	downgrade := func(t *testing.T, l *zamok.Lease) {
		if err := l.Downgrade(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for name, try := range map[string]struct {
		mode       string
		first, who func(*client) taker
		free       func(*testing.T, *zamok.Lease)
	}{
		"a mutex is released": {
			"w", func(c *client) taker { return c.Mutex("job", nil).Lock }, func(c *client) taker { return c.Mutex("job", nil).Lock }, release,
		},
		"a writer becomes a reader": {
			"r", func(c *client) taker { return c.RWMutex("job", nil).Lock }, func(c *client) taker { return c.RWMutex("job", nil).RLock }, downgrade,
		},
		"a permit is released": {
			"p", func(c *client) taker { return c.Semaphore("job", 1, nil).Acquire }, func(c *client) taker { return c.Semaphore("job", 1, nil).Acquire }, release,
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened(t, func(t *testing.T, s *zamoktest.Server) {
				held := take(t, try.first(s.Client()))
				granted := behind(t, try.who(s.Client()))
				queued(t, s, try.mode, "zamok:inbox:gone")
				pass(3 * time.Second) // it knows its place
				s.Restart()
				try.free(t, held)
				mustFollow(t, 100*time.Millisecond, time.Now().Add(longest), granted)
				if held.Err() == nil {
					release(t, held)
				}
			})
		})
	}
}

// TestTheDeadBeforeOneWhoComes in a quarantine: it drops them itself.
func TestTheDeadBeforeOneWhoComes(t *testing.T) {
	for name, next := range map[string]func(*zamok.Client) taker{
		"a mutex":     func(c *zamok.Client) taker { return c.Mutex("job", nil).Lock },
		"a semaphore": func(c *zamok.Client) taker { return c.Semaphore("job", 1, nil).Acquire },
	} {
		t.Run(name, func(t *testing.T) {
			opened(t, func(t *testing.T, s *zamoktest.Server) {
				s.Wipe()
				granted := behind(t, next(s.Client()))
				end := time.Now().Add(longest)
				queued(t, s, "w", "zamok:inbox:gone")
				mustFollow(t, 100*time.Millisecond, end, granted)
			})
		})
	}
}

// TestWhoDiesInQuarantine while others who stand behind know of it: they do not wait for
// each of the dead afterwards.
func TestWhoDiesInQuarantine(t *testing.T) {
	opened(t, func(t *testing.T, s *zamoktest.Server) {
		s.Restart()
		end := time.Now().Add(longest)
		granted := behind(t, s.Client().Mutex("job", nil).Lock)
		sub, err := s.Subscribe(t.Context(), time.Second, "zamok:inbox:other", func(driver.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		queued(t, s, "w", "zamok:inbox:other")
		pass(longest / 2) // it asks as the first, and learns that it is behind them
		sub.Close()
		mustFollow(t, 5*time.Second, end, granted)
	})
}

// TestNoExpiryOfWhatWasReleased: in a quarantine it goes to nobody, so that the first in
// the queue, who had no message and no reply meanwhile, finds it free.
func TestNoExpiryOfWhatWasReleased(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies=", dies), func(t *testing.T) {
			opened(t, func(t *testing.T, s *zamoktest.Server) {
				h := lock(t, s.Client().Mutex("job", nil))
				granted := behind(t, s.Client().Mutex("job", nil).Lock)
				if dies { // long before
					if _, err := h.Detach(); err != nil {
						t.Fatal(err)
					}
				} else {
					s.Restart()
					mustBeClosed(t, longest, s.Client().Mutex("other", nil).TryLock)
					pass(3 * time.Second) // the waiter asks, and is the first
					s.Intercept(func(call driver.Call) memory.Fault { return memory.Fault{DropRequest: call.Script == lua.Acquire} })
					s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
					pass(time.Second)
					release(t, h)
					pass(longest)
					s.Intercept(nil)
					s.InterceptMessage(nil)
				}
				next := <-granted
				pass(5 * time.Second)
				if events := written(t, s); (len(events) > 0) != dies {
					t.Errorf("got %+v", events)
				}
				release(t, next)
			})
		})
	}
}
