package zamok_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/zamoktest"
)

// written returns the events that were written down, oldest first.
func written(t *testing.T, s *zamoktest.Server) []proc.Event {
	t.Helper()
	reply, err := s.Eval(t.Context(), driver.Call{
		Script: lua.Events, Keys: []string{keys.Events("")}, Args: []string{"", "1000"}, Limit: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var events []proc.Event
	f := reply.([]any)
	for i := 2; i < len(f); i += 2 {
		e, ok := proc.ParseEvent(f[i].(string))
		if !ok {
			t.Fatalf("not an event: %q", f[i])
		}
		events = append(events, e)
	}
	return events
}

func TestLossesAreWrittenDown(t *testing.T) {
	bubble(t, &zamok.Config{Name: "mailer"}, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		deleted := lock(t, c.Mutex("deleted", nil))
		limited := lock(t, c.Mutex("limited", &zamok.MutexConfig{MaxHold: 2 * time.Second}))
		broken := lock(t, c.Mutex("broken", nil))
		released := lock(t, c.Mutex("released", nil))
		pass(time.Second)
		s.Lose("deleted")
		breakIt(t, s, "broken", broken.Token(), "ask")
		pass(10 * time.Second)
		release(t, released)
		pass(10 * time.Second)
		events := written(t, s)
		want := map[string]*zamok.Lease{proc.Deleted: deleted, proc.MaxHold: limited} // a break is written by whoever breaks
		for _, e := range events {
			l := want[e.Kind]
			if l == nil {
				t.Errorf("%+v", e)
				continue
			}
			delete(want, e.Kind)
			if string(e.Name) != l.Name() || string(e.Key) != s.Key(l.Name()) || e.Token != l.Token() || e.Fence != l.Fence() || e.Service != "mailer" || e.HeldMS < 1000 {
				t.Errorf("%+v", e)
			}
		}
		if len(want) > 0 {
			t.Errorf("not written: %v", want)
		}
	})
}

// TestDeathIsWrittenDown: by the next in line, since the dead tell nothing.
func TestDeathIsWrittenDown(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		dead := lock(t, s.Client().Mutex("job", nil))
		if _, err := dead.Detach(); err != nil { // nobody renews it
			t.Fatal(err)
		}
		next := <-waiting(t, s.Client().Mutex("job", nil))
		pass(2 * time.Second)
		events := written(t, s)
		if len(events) != 1 || events[0].Kind != proc.Expired || events[0].Token != dead.Token() || events[0].Fence != dead.Fence() || events[0].Next != next.Token() {
			t.Errorf("%+v", events)
		}
		if ms := events[0].HeldMS; ms < 14000 || ms > 17000 {
			t.Errorf("held for %d ms", ms)
		}
		release(t, next)
	})
}

// TestNoDeathIsInvented: a waiter that learns of its turn by asking writes nothing
// down when the holder had released.
func TestNoDeathIsInvented(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
		release(t, l)
		next := <-got
		pass(5 * time.Second)
		release(t, next)
		if events := written(t, s); len(events) > 0 {
			t.Errorf("%+v", events)
		}
	})
}

// TestLossesInAnOutageAreWrittenDownAfterIt: that is when most are lost.
func TestLossesInAnOutageAreWrittenDownAfterIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		for i := range 250 {
			lock(t, c.Mutex(fmt.Sprint(i), nil))
		}
		s.Down(errors.New("no route"))
		pass(time.Minute)
		before := s.Calls()["note"]
		s.Up()
		pass(40 * time.Second)
		events := written(t, s)
		if len(events) != 100 || events[99].More != 150 || events[0].Kind != proc.Expired || events[0].Why == "" {
			t.Errorf("%d events, the last %+v", len(events), events[len(events)-1])
		}
		if n := s.Calls()["note"] - before; n != 1 {
			t.Errorf("%d calls for them", n)
		}
	})
}

func TestClosingWritesTheLast(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		a, b := lock(t, c.Mutex("a", nil)), lock(t, c.Mutex("b", nil))
		s.Lose("a")
		_ = a.Check(t.Context())
		synctest.Wait()
		s.Lose("b") // within the same second
		_ = b.Check(t.Context())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if events := written(t, s); len(events) != 2 {
			t.Errorf("%+v", events)
		}
	})
}

// TestNoDeathOfTheWrongOne: who waits far behind has not heard for long who holds.
// The first released, and it was the second, of which we know nothing, that died.
func TestNoDeathOfTheWrongOne(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		second := waiting(t, s.Client().Mutex("job", nil))
		third := waiting(t, s.Client().Mutex("job", nil))
		pass(8 * time.Second)
		release(t, first)
		if _, err := (<-second).Detach(); err != nil { // nobody renews it
			t.Fatal(err)
		}
		release(t, <-third)
		pass(3 * time.Second)
		for _, e := range written(t, s) {
			if e.Token == first.Token() {
				t.Errorf("%+v, but it had been released", e)
			}
		}
	})
}

// TestNoDeathIsInventedByOneThatWasCutOff: it could not be heard when the holder
// released, so it was passed over.
func TestNoDeathIsInventedByOneThatWasCutOff(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		s.Break() // of all subscriptions, and no acquire of the waiter arrives
		s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropRequest: c.Script == lua.Acquire} })
		pass(20 * time.Second)
		release(t, l)
		pass(time.Second)
		s.Intercept(nil)
		s.Reconnect()
		next := <-got
		pass(3 * time.Second)
		if events := written(t, s); len(events) > 0 {
			t.Errorf("%+v", events)
		}
		release(t, next)
	})
}

// TestRestIsNoDeath: a lock that rests is not taken out of the queue's way, and its
// holder had released it.
func TestRestIsNoDeath(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", &zamok.MutexConfig{MinHold: 2 * time.Second}))
		got := waiting(t, s.Client().Mutex("job", nil))
		pass(1100 * time.Millisecond)
		release(t, l)
		release(t, <-got)
		pass(3 * time.Second)
		if events := written(t, s); len(events) > 0 {
			t.Errorf("%+v", events)
		}
	})
}

// TestNoDeathIsInventedWhenItCouldHaveReleased: a waiter that nobody hears for a
// moment is passed over by a release, and then finds the lock free at the very time
// at which it would have ended.
func TestNoDeathIsInventedWhenItCouldHaveReleased(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		s.Intercept(func(c driver.Call) memory.Fault { // what it asks arrives late
			if c.Script == lua.Acquire {
				return memory.Fault{Delay: 800 * time.Millisecond}
			}
			return memory.Fault{}
		})
		pass(500 * time.Millisecond)
		s.Break()
		release(t, l)
		s.Reconnect()
		next := <-got
		s.Intercept(nil)
		pass(3 * time.Second)
		if events := written(t, s); len(events) > 0 {
			t.Errorf("%+v", events)
		}
		release(t, next)
	})
}

// TestNoSecretIsWrittenDown: a library's error may have a URL with a password, and
// all who share the server read what is written.
func TestNoSecretIsWrittenDown(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		lock(t, s.Client().Mutex("job", nil))
		s.Down(errors.New("dial redis://zamok:hunter2@10.0.0.1:6379: refused"))
		pass(time.Minute)
		s.Up()
		pass(40 * time.Second)
		events := written(t, s)
		if len(events) != 1 || events[0].Why == "" || strings.Contains(events[0].Why, "hunter2") {
			t.Errorf("%+v", events)
		}
	})
}
