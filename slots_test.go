package zamok_test

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
	"github.com/zamok-go/zamok/internal/keys"
)

// inSlots runs a test in virtual time on a server that passes for a cluster.
func inSlots(t *testing.T, f func(t *testing.T, s *memory.Server, client func() *zamok.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewCluster()
		f(t, s, func() *zamok.Client {
			c, err := zamok.New(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		})
	})
}

// slotInbox is where a client waits for the lock.
func slotInbox(t *testing.T, c *zamok.Client, name string) string {
	t.Helper()
	set, err := keys.ForName("", name)
	if err != nil {
		t.Fatal(err)
	}
	return set.Inbox(c.ID())
}

// waits has a client wait for a lock, and returns what it got once it has it.
func waits(t *testing.T, s *memory.Server, c *zamok.Client, name string) (lease func() *zamok.Lease) {
	t.Helper()
	got := make(chan *zamok.Lease, 1)
	go func() {
		l, err := c.Mutex(name, nil).Lock(context.Background())
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	synctest.Wait()
	if n := s.Subscribers(slotInbox(t, c, name)); n != 1 {
		t.Fatalf("%d subscriptions at the slot of %s", n, name)
	}
	return func() *zamok.Lease { return <-got }
}

// A release reaches the waiter at the inbox of the lock's slot, at once.
func TestSlotHandOver(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		first := lock(t, client().Mutex("job", nil))
		c := client()
		second := waits(t, s, c, "job")
		if members := s.ZMembers("zamok:queue:{lock:job}"); len(members) != 1 || !strings.HasSuffix(members[0], "|"+slotInbox(t, c, "job")) {
			t.Errorf("the queue is %q", members)
		}
		pass(300 * time.Millisecond)
		start := time.Now()
		release(t, first)
		release(t, second())
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
		if n := s.Subscribers("zamok:inbox:" + c.ID()); n != 0 {
			t.Error("subscribed to the plain inbox, too")
		}
	})
}

// Two locks of one slot have one subscription, those of two slots have two; each
// ends about a minute after the last who needed it, and comes back when it is
// needed.
func TestSlotInboxesComeAndGo(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		rival, c := client(), client()
		names := []string{"a{one}", "b{one}", "c{two}"}
		cycle := func() {
			var held []*zamok.Lease
			for _, name := range names {
				held = append(held, lock(t, rival.Mutex(name, nil)))
			}
			var got []func() *zamok.Lease
			for _, name := range names {
				got = append(got, waits(t, s, c, name))
			}
			pass(2 * time.Minute) // as long as anybody waits
			for i, name := range names {
				release(t, held[i])
				release(t, got[i]())
				if n := s.Subscribers(slotInbox(t, c, name)); n != 1 {
					t.Errorf("%d subscriptions at the slot of %s right after it", n, name)
				}
			}
		}
		cycle()
		pass(50 * time.Second)
		cycle() // the minute begins anew
		pass(59 * time.Second)
		if n := s.Subscribers(slotInbox(t, c, names[0])); n != 1 {
			t.Errorf("%d subscriptions before a minute has passed", n)
		}
		pass(2 * time.Second)
		for _, name := range names {
			if n := s.Subscribers(slotInbox(t, c, name)); n != 0 {
				t.Errorf("%d subscriptions at the slot of %s after a minute", n, name)
			}
		}
		cycle()
	})
}

// Close ends them, also while somebody waits, and while one is being closed.
func TestSlotInboxesEndWithTheClient(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		rival, c := client(), client()
		l := lock(t, rival.Mutex("used", nil))
		got := waits(t, s, c, "used")
		release(t, l)
		release(t, got())
		lock(t, rival.Mutex("waited for", nil))
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if _, err := c.Mutex("waited for", nil).Lock(t.Context()); err == nil {
				t.Error("locked")
			}
		})
		synctest.Wait()
		pass(time.Minute) // the first inbox ends at this instant
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		waiter.Wait()
		for _, name := range []string{"used", "waited for"} {
			if n := s.Subscribers(slotInbox(t, c, name)); n != 0 {
				t.Errorf("%d subscriptions at the slot of %s are left", n, name)
			}
		}
	})
}

// A slot that goes to another server breaks the subscription: whoever waits asks,
// and stands again.
func TestSlotMoves(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		first := lock(t, client().Mutex("job", nil))
		second := waits(t, s, client(), "job")
		asked := s.Calls()["acquire"]
		s.Break()
		pass(time.Second) // messages are lost, and the first in the queue asks
		s.Reconnect()
		synctest.Wait()
		if n := s.Calls()["acquire"] - asked; n < 2 {
			t.Errorf("asked %d times when the subscription broke and came back", n)
		}
		start := time.Now()
		release(t, first)
		release(t, second())
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

// An operator speaks to the plain inbox, which a holder hears in a cluster too: it
// is not of any slot.
func TestSlotHolderHearsOperators(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		c := client()
		l, err := c.Mutex("long", &zamok.MutexConfig{TTL: time.Hour}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if n := s.Subscribers("zamok:inbox:" + c.ID()); n != 1 {
			t.Fatalf("%d subscriptions to the plain inbox", n)
		}
		value, _ := s.Get("lock:long")
		s.Set("lock:long", value+"!eve!stuck", time.Hour)
		s.Publish("zamok:inbox:"+c.ID(), "break "+l.Token()+" lock:long")
		pass(time.Millisecond)
		if l.Err() == nil {
			t.Error("the holder was not told")
		}
	})
}

// tryAgain has the server answer as while the slot is on its way: a script that names
// one key alone is run.
func tryAgain(s *memory.Server) {
	s.Intercept(func(c driver.Call) memory.Fault {
		if len(c.Keys) > 1 {
			return memory.Fault{Err: &driver.ServerError{Text: "TRYAGAIN Multiple keys request during rehashing of slot"}}
		}
		return memory.Fault{}
	})
}

func free(s *memory.Server, name string) bool {
	_, held := s.Get("lock:" + name)
	return !held
}

// A lock whose slot is half at another server is given back all the same. It goes to
// nobody before the slot is there, and then in the order in which they came.
func TestSlotMovesAndReleaseComes(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		l := lock(t, client().Mutex("job", nil))
		first := waits(t, s, client(), "job")
		second := waits(t, s, client(), "job")
		tryAgain(s)
		start := time.Now()
		release(t, l)
		if took := time.Since(start); took > 0 {
			t.Errorf("released after %v", took)
		}
		if !free(s, "job") {
			t.Error("it is not free")
		}
		pass(time.Second)
		s.Intercept(nil)
		if _, err := client().Mutex("job", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("one that came last: %v", err)
		}
		a := first()
		release(t, a)
		b := second()
		if b.Fence() <= a.Fence() {
			t.Errorf("fence %d after %d", b.Fence(), a.Fence())
		}
		release(t, b)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("all were served after %v", took)
		}
	})
}

// Nor is anybody disturbed who got the lock meanwhile, or who asked for a rest.
func TestSlotMovesAndReleaseIsNotOurs(t *testing.T) {
	inSlots(t, func(t *testing.T, s *memory.Server, client func() *zamok.Client) {
		l := lock(t, client().Mutex("job", nil))
		rests := lock(t, client().Mutex("rests", &zamok.MutexConfig{MinHold: time.Minute}))
		closed := client()
		lock(t, closed.Mutex("closed", nil))
		s.Del("lock:job")
		other := lock(t, client().Mutex("job", nil))
		tryAgain(s)
		if err := l.Release(t.Context()); err == nil {
			t.Error("another has it, and it was released")
		}
		if err := rests.Release(t.Context()); !errors.Is(err, zamok.ErrUnavailable) || free(s, "rests") {
			t.Errorf("one that rests: %v, it is free: %v", err, free(s, "rests"))
		}
		if err := closed.Close(); err != nil || !free(s, "closed") {
			t.Errorf("Close: %v, it is free: %v", err, free(s, "closed"))
		}
		s.Intercept(nil)
		if err := other.Check(t.Context()); err != nil {
			t.Errorf("the other one: %v", err)
		}
		release(t, other)
	})
}
