package wake

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// channel is a driver that only subscribes, and lets the test speak.
type channel struct {
	driver.Driver
	subscribed int
	err        error
	handle     func(driver.Event)
}

func (c *channel) Subscribe(_ context.Context, _ time.Duration, _ string, handle func(driver.Event)) (driver.Subscription, error) {
	c.subscribed++
	if c.err != nil {
		return nil, c.err
	}
	c.handle = handle
	handle(driver.Event{Kind: driver.Subscribed})
	return c, nil
}

func (c *channel) Close() error { return nil }

func (c *channel) say(format string, args ...any) {
	c.handle(driver.Event{Kind: driver.Message, Payload: fmt.Sprintf(format, args...)})
}

func open(t *testing.T, c *channel) (*Inbox, *[]Grant) {
	t.Helper()
	orphans := new([]Grant)
	b := New(Config{Driver: c, Channel: "in", Orphan: func(g Grant) { *orphans = append(*orphans, g) }, Changed: func(string, error) {}})
	t.Cleanup(b.Close)
	if inbox, err := b.Open(t.Context(), time.Second); c.err == nil && (inbox != "in" || err != nil) {
		t.Fatalf("Open = %q, %v", inbox, err)
	}
	return b, orphans
}

func TestGrantsReachTheirWaiter(t *testing.T) {
	c := new(channel)
	b, orphans := open(t, c)
	w, other := b.Join("a"), b.Join("b")
	c.say("grant a 5 6 2000 lock:with spaces")
	c.say("grant a 7 8 2000 lock:with spaces") // the newest wins, and nothing blocks
	if g := <-w.Grant; g != (Grant{Token: "a", Fence: 7, Time: 8, TTL: 2 * time.Second, Lock: "lock:with spaces"}) {
		t.Errorf("got %+v", g)
	}
	c.say("next b 1500 lock")
	c.say("next b 900 lock")
	if d := <-other.Next; d != 900*time.Millisecond {
		t.Errorf("next: %v", d)
	}
	c.say("grant a 9 10 2000 lock")
	b.Leave(w)
	if again := b.Join("c"); len(again.Grant)+len(again.Next)+len(again.Doubt) != 0 {
		t.Error("a waiter begins with another's message")
	}
	c.say("grant a 11 12 2000 lock")
	c.say("next a 900 lock")
	if len(*orphans) != 1 || (*orphans)[0].Fence != 11 {
		t.Errorf("orphans %+v", *orphans)
	}
}

func TestABreakPutsAllInDoubt(t *testing.T) {
	c := new(channel)
	b, _ := open(t, c)
	w := b.Join("a")
	if len(w.Doubt) != 0 {
		t.Error("in doubt after the first confirmation")
	}
	c.handle(driver.Event{Kind: driver.Broken})
	<-w.Doubt
	if b.Up() {
		t.Error("up after a break")
	}
	c.handle(driver.Event{Kind: driver.Subscribed})
	<-w.Doubt
	if !b.Up() {
		t.Error("not up again")
	}
}

func TestSuspectIsSeldom(t *testing.T) {
	c := new(channel)
	b, _ := open(t, c)
	w := b.Join("a")
	for range 100 {
		b.Suspect()
		if _, err := b.Open(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	<-w.Doubt
	if c.subscribed != 2 {
		t.Errorf("subscribed %d times, want a second time and no more", c.subscribed)
	}
}

func TestRefusalMeansPolling(t *testing.T) {
	c := &channel{err: &driver.ServerError{Text: "NOPERM this user has no permissions to access one of the channels"}}
	b, _ := open(t, c)
	for range 3 {
		if inbox, err := b.Open(t.Context(), time.Second); inbox != Poll || err != nil {
			t.Errorf("Open = %q, %v", inbox, err)
		}
	}
	if c.subscribed != 1 {
		t.Errorf("asked %d times within a minute", c.subscribed)
	}
	c = &channel{err: errors.New("connection refused")}
	b, _ = open(t, c)
	if inbox, err := b.Open(t.Context(), time.Second); err == nil {
		t.Errorf("Open = %q without a subscription", inbox)
	}
}

// FuzzMessage: whatever arrives on the channel, nothing panics, and what is taken
// for a grant is complete.
func FuzzMessage(f *testing.F) {
	f.Add("grant z1/h/1/x/1 1795978707451209 1795978707451209 2000 lock:a b")
	f.Add("next z1/h/1/x/1 2000 lock:a")
	f.Add("grant  - - -")
	f.Fuzz(func(t *testing.T, payload string) {
		if g, ok := parse(payload); ok && (g.Token == "" || g.Fence <= 0 || g.Time <= 0 || g.TTL <= 0 || g.Lock == "") {
			t.Errorf("%q is taken for %+v", payload, g)
		}
		if token, _, ok := parseNext(payload); ok && token == "" {
			t.Errorf("%q is taken for a message to nobody", payload)
		}
	})
}

// An inbox that is being retired takes no grant for an orphan: the next one of the
// channel may have it. A timer that fired twice finds nothing.
func TestRetiredInboxMakesNoOrphans(t *testing.T) {
	c, orphans := new(channel), 0
	s := NewInboxes(Config{Driver: c, Orphan: func(Grant) { orphans++ }, Changed: func(string, error) {}})
	defer s.Close()
	b := s.Take("in")
	if _, err := b.Open(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	s.Give(b)
	s.retire(b)
	s.retire(b)
	c.say("grant a 5 6 2000 lock")
	if orphans != 0 {
		t.Error("an orphan of a retired inbox")
	}
	if next := s.Take("in"); next == b {
		t.Error("the retired inbox again")
	}
}
