package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestCase20LoserLearnsServiceAndReason(t *testing.T) {
	bubble(t, &zamok.Config{Name: "mailer"}, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		holder := lock(t, c.Mutex("job", &zamok.MutexConfig{Reason: "sending invoices"}))
		pass(12 * time.Second)
		loser := s.Client()
		for range 3 {
			_, err := loser.Mutex("job", nil).TryLock(t.Context())
			var held *zamok.HeldError
			if !errors.As(err, &held) || held.Service != "mailer" || held.Reason != "sending invoices" {
				t.Fatalf("err = %v", err)
			}
			for _, part := range []string{"held by mailer on ", "pid ", "for 12s", "sending invoices", fmt.Sprint(holder.Fence())} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		}
		if n := s.Calls()["whois"]; n != 1 {
			t.Errorf("looked up %d times, want once", n)
		}
		_, err := s.Client().Mutex("job", &zamok.MutexConfig{Wait: time.Second}).Lock(t.Context())
		if !strings.Contains(err.Error(), "sending invoices") {
			t.Errorf("after waiting: %v", err)
		}
		release(t, holder)
	})
}

func TestPresenceIsCheapAndEnds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		key := keys.Proc("", c.ID())
		m := c.Mutex("job", &zamok.MutexConfig{Reason: "r", TTL: time.Hour})
		for range 1000 { // 10 s of change
			l := lock(t, m)
			pass(10 * time.Millisecond)
			release(t, l)
		}
		synctest.Wait()
		if n := s.Calls()["announce"]; n > 12 {
			t.Errorf("said %d times in 10 s who it is, want about one a second", n)
		}
		l := lock(t, m)
		pass(2 * time.Second)
		before := s.Calls()["announce"]
		pass(10 * time.Minute)
		if n := s.Calls()["announce"] - before; n != 20 {
			t.Errorf("said %d times in 10 min while nothing changed, want one in 30 s", n)
		}
		if ttl, ok := s.TTL(key); !ok || ttl <= time.Hour-time.Minute {
			t.Errorf("TTL %v, want longer than the lease that it names", ttl)
		}
		release(t, l)
		pass(2 * time.Hour)
		if s.Type(key) != "none" {
			t.Error("it goes on although nothing is held")
		}
		release(t, lock(t, m))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for _, k := range s.Keys() {
			if !strings.HasPrefix(k, "zamok:fence:") {
				t.Errorf("%s is left after Close", k)
			}
		}
	})
}

// said returns what a client says of itself.
func said(t *testing.T, s *zamoktest.Server, id string) proc.Record {
	t.Helper()
	reply, err := s.Eval(t.Context(), driver.Call{Script: lua.Whois, Keys: []string{keys.Proc("", id)}, Limit: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := proc.Parse(reply.(string))
	if !ok {
		t.Fatalf("client %s says nothing: %q", id, reply)
	}
	return r
}

func TestPresenceNamesWhatIsHeldAndWaitedFor(t *testing.T) {
	cfg := &zamok.Config{Name: "svc", Version: "v1.2.3", Command: "svc serve", Under: "z1/outer/1/x/1"}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		a, b := s.Client(), s.Client()
		first := lock(t, a.Mutex("a", &zamok.MutexConfig{Reason: "why", TTL: time.Minute}))
		other := lock(t, b.Mutex("b", &zamok.MutexConfig{Key: "old:b"}))
		done := make(chan error, 1)
		go func() {
			done <- a.Mutex("b", &zamok.MutexConfig{Key: "old:b"}).Do(first.Context(), func(context.Context) error { return nil })
		}()
		pass(3 * time.Second)
		r := said(t, s, a.ID())
		start := "z1/" + a.ID() + "/"
		want := proc.Record{
			Service: "svc", Version: "v1.2.3", Command: "svc serve", Host: r.Host, PID: r.PID, UpMS: r.UpMS, TTLMS: 90000,
			Holding: 1, Waiting: 1,
			Held:  []proc.Lease{{Name: "a", Token: proc.Short(start, first.Token()), TTLMS: 60000, Reason: "why"}},
			Waits: []proc.Wait{{Name: "b", Key: "old:b", Token: r.Waits[0].Token, Under: []string{first.Token(), "z1/outer/1/x/1"}}},
		}
		if !reflect.DeepEqual(r, want) {
			t.Errorf("says %+v\nwant  %+v", r, want)
		}
		release(t, other)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		release(t, first)
		pass(3 * time.Second)
		if r := said(t, s, a.ID()); r.Holding+r.Waiting+len(r.Held)+len(r.Waits) != 0 {
			t.Errorf("still says %+v", r)
		}
	})
}

// TestPresenceRate: what the issue promises, under every kind of change at once.
func TestPresenceRate(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c, rival := s.Client(), s.Client()
		hold := lock(t, rival.Mutex("busy", nil))
		for i := range 500 { // 10 s
			l := lock(t, c.Mutex(fmt.Sprint(i%7), nil))
			_, err := c.Mutex("busy", &zamok.MutexConfig{Wait: 10 * time.Millisecond}).Lock(t.Context())
			if !errors.Is(err, zamok.ErrHeld) {
				t.Fatal(err)
			}
			pass(10 * time.Millisecond)
			release(t, l)
		}
		synctest.Wait()
		if n := s.Calls()["announce"]; n > 11+2 { // the rival's first and its refresh
			t.Errorf("said %d times in 10 s", n)
		}
		release(t, hold)
	})
}

// TestPresenceOfThousandsIsWrittenSeldom: what is written again at each change
// grows with what is held, so it is written that much less often.
func TestPresenceOfThousandsIsWrittenSeldom(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Hour}, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		for i := range 5000 {
			lock(t, c.Mutex(fmt.Sprint(i), nil))
		}
		pass(10 * time.Second)
		before := s.Calls()["announce"]
		for range 30 {
			l := lock(t, c.Mutex("x", nil))
			pass(time.Second)
			release(t, l)
		}
		if n := s.Calls()["announce"] - before; n < 3 || n > 6 {
			t.Errorf("5,000 leases: said %d times in 30 s of change, want about 5", n)
		}
		if r := said(t, s, c.ID()); len(r.Held) < 5000 || r.Holding != len(r.Held) {
			t.Errorf("names %d of %d", len(r.Held), r.Holding)
		}
	})
}

func TestPresenceStaysForWhatWasGivenAway(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		l := lock(t, c.Mutex("job", &zamok.MutexConfig{TTL: 10 * time.Minute}))
		token, err := l.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		r := said(t, s, c.ID())
		if !r.Left || len(r.Held) != 1 || r.Held[0].Name != "job" || !r.Held[0].Given || r.Holding != 1 {
			t.Errorf("a closed client leaves %+v", r)
		}
		// Another process makes it last longer, and says so as long as that.
		d := s.Client()
		if err := d.Mutex("job", nil).ExtendToken(t.Context(), token, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		pass(50 * time.Minute)
		r = said(t, s, d.ID())
		if len(r.Held) != 1 || r.Held[0].Token != token {
			t.Errorf("who extended it leaves %+v", r)
		}
		pass(time.Hour)
		for _, k := range s.Keys() {
			if !strings.HasPrefix(k, "zamok:fence:") {
				t.Errorf("%s is left", k)
			}
		}
	})
}
