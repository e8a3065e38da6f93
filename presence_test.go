package zamok_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
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
		key := "zamok:proc:" + c.ID()
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
