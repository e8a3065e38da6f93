package inspect_test

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
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
)

func note(t *testing.T, s *memory.Server, texts ...string) {
	t.Helper()
	_, err := s.Eval(t.Context(), driver.Call{
		Script: lua.Note, Keys: []string{keys.Events("")}, Limit: time.Second,
		Args: append([]string{fmt.Sprint(proc.EventsKept), fmt.Sprint(proc.EventsTTL.Milliseconds())}, texts...),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func events(t *testing.T, in *inspect.Inspector, after string, most int) []inspect.Event {
	t.Helper()
	list, err := in.Events(t.Context(), after, most)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		if l := events(t, in, "", 0); len(l) != 0 {
			t.Errorf("an empty server: %+v", l)
		}
		for n := range 10 {
			note(t, server, proc.Event{Kind: proc.Expired, Name: "a", Token: fmt.Sprint("z1/h/1/r/", n), Fence: int64(n)}.Text())
			time.Sleep(time.Second)
		}
		fences := func(list []inspect.Event) string {
			s := ""
			for _, e := range list {
				s += fmt.Sprint(e.Fence)
			}
			return s
		}
		list := events(t, in, "", 0)
		if got := fences(list); got != "0123456789" {
			t.Errorf("all: %q", got)
		}
		if got := fences(events(t, in, "", 3)); got != "789" {
			t.Errorf("the newest: %q", got)
		}
		if got := fences(events(t, in, list[3].ID, 3)); got != "456" {
			t.Errorf("after the fourth: %q", got)
		}
		if l := events(t, in, list[9].ID, 3); len(l) != 0 {
			t.Errorf("after the last: %+v", l)
		}
		if e := list[4]; e.Ago != 6*time.Second || e.Time.UnixMilli() != server.Now()/1000-6000 {
			t.Errorf("ago %v, at %v", e.Ago, e.Time)
		}
	})
}

// What operators and holders write down comes back whole.
func TestEventsTellAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		owner := service(t, server, zamok.Config{Name: "mailer"})
		lease := hold(t, owner, "b\xff", nil)
		next := process(t, server, "")
		got := make(chan *zamok.Lease, 1)
		go func() {
			l, err := next.Mutex("b\xff", nil).Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		time.Sleep(90 * time.Second)
		if _, err := in.Break(t.Context(), show(t, in, "b\xff"), &inspect.BreakConfig{By: "alice", Why: "no \"reason\"", Now: true}); err != nil {
			t.Fatal(err)
		}
		l := <-got
		e := events(t, in, "", 0)[0]
		want := inspect.Event{
			ID: e.ID, Time: e.Time, Kind: inspect.EventBroken, Of: inspect.KindLock, Name: "b\xff", Key: "lock:b\xff", Holder: e.Holder, Service: "mailer",
			Fence: lease.Fence(), Held: 90 * time.Second, By: "alice", Now: true, Why: "no \"reason\"", Next: e.Next,
		}
		if e != want || e.Holder.Token != lease.Token() || e.Holder.Client != owner.ID() || e.Next.Token != l.Token() || e.Next.Client != next.ID() {
			t.Errorf("%+v\nwant %+v", e, want)
		}
		server.Set("lock:f", "foreign value", time.Minute)
		if _, err := in.Break(t.Context(), show(t, in, "f"), &inspect.BreakConfig{Why: "x", Now: true}); err != nil {
			t.Fatal(err)
		}
		list := events(t, in, e.ID, 0)
		if f := list[len(list)-1]; !f.Holder.Foreign || f.Holder.Token != "foreign value" || f.Next != (zamok.Holder{}) || f.Fence != 0 || f.Held != 0 {
			t.Errorf("%+v", f)
		}
		note(t, server, proc.Event{Kind: proc.Data, More: 41, Why: "i/o timeout"}.Text())
		list = events(t, in, "", 1)
		if g := list[0]; g.Kind != inspect.EventData || g.More != 41 || g.Why != "i/o timeout" {
			t.Errorf("%+v", g)
		}
	})
}

// What cannot be read is left out, and does not keep one from what is behind it.
func TestEventsLeaveOutGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		note(t, server, proc.Event{Kind: proc.Taken, Name: "first"}.Text())
		first := events(t, in, "", 0)[0].ID
		for range 25 {
			note(t, server, "{}", "x", "", `{"kind":7}`)
		}
		if l := events(t, in, first, 10); len(l) != 0 {
			t.Errorf("%+v", l)
		}
		note(t, server, proc.Event{Kind: proc.Taken, Name: "last"}.Text())
		if l := events(t, in, first, 10); len(l) != 1 || l[0].Name != "last" {
			t.Errorf("%+v", l)
		}
		if l := events(t, in, "", 10); len(l) != 1 || l[0].Name != "last" {
			t.Errorf("the newest: %+v", l)
		}
	})
}

// A loss is told once, also when it was written twice: by a library that repeats a
// call whose reply was lost, or by the holder that came back and the next in line.
func TestEventsTellALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		lost := proc.Event{Kind: proc.Expired, Name: "a", Token: "z1/h/1/r/1", Fence: 7, Next: "z1/h/1/r/2"}
		again := lost
		again.Next, again.Why = "", "i/o timeout"
		other := lost
		other.Token, other.Fence = "z1/h/1/r/3", 8
		note(t, server, lost.Text(), lost.Text(), again.Text(), other.Text())
		if l := events(t, in, "", 0); len(l) != 2 || l[0].Next.Token != lost.Next || l[1].Fence != 8 {
			t.Errorf("%+v", l)
		}
		broken := proc.Event{Kind: proc.Broken, Name: "a", Token: lost.Token, Fence: 7, By: "alice"}
		second := broken
		second.By = "bob"
		note(t, server, broken.Text(), second.Text())
		if l := events(t, in, "", 0); len(l) != 4 {
			t.Errorf("each operator's break is to be told: %+v", l)
		}
	})
}

// The lease that its process had passed on has another fence than the server knows,
// and is the same loss for all that.
func TestEventsTellThatOfAPassedLeaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		wait := func(c *zamok.Client) <-chan *zamok.Lease {
			got := make(chan *zamok.Lease, 1)
			go func() {
				l, err := c.Mutex("a", nil).Lock(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			synctest.Wait()
			return got
		}
		owner := process(t, server, "")
		first, second, third := wait(owner), wait(owner), wait(owner)
		for _, got := range []<-chan *zamok.Lease{first, second} {
			if err := (<-got).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		l := <-third
		next := wait(process(t, server, ""))
		server.Intercept(func(c driver.Call) memory.Fault {
			if len(c.Args) > 0 && strings.HasPrefix(c.Args[0], "z1/"+owner.ID()+"/") {
				return memory.Fault{Err: errors.New("reset")}
			}
			return memory.Fault{}
		})
		<-next
		time.Sleep(5 * time.Second)
		if list := events(t, in, "", 0); len(list) != 1 || list[0].Kind != inspect.EventExpired || list[0].Fence != l.Fence() {
			t.Errorf("%+v, of fence %d", list, l.Fence())
		}
		server.Intercept(nil)
	})
}
