package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Latency(30 * time.Millisecond)
		start := time.Now()
		eval(t, s, acquire("a", ""))
		if d := time.Since(start); d != 60*time.Millisecond {
			t.Fatalf("a call took %v", d)
		}
		inbox := subscribe(t, s, "in")
		s.Publish("in", "m")
		time.Sleep(29 * time.Millisecond)
		synctest.Wait()
		inbox.mustBe(t, "subscribed")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "m")
	})
}

// A hung server answers nobody, and runs everything when it goes on.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		s.Hang()
		start := time.Now()
		_, err := s.Eval(t.Context(), acquire("late", ""))
		mustTakeLimit(t, err, start, time.Second)
		mustBeHeldBy(t, s, "")

		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = s.Eval(ctx, acquire("later", ""))
		mustTakeLimit(t, err, start, 300*time.Millisecond)

		time.AfterFunc(100*time.Millisecond, s.Unhang)
		if got := eval(t, s, renew("late")); got != "renewed" {
			t.Fatalf("the renewal, sent last, came before the acquire: %s", got)
		}
		mustBeHeldBy(t, s, "late")
		inbox.mustBe(t, "subscribed") // it was too short for a PING to fail
	})
}

func TestLongHangBreaksSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		s.Hang()
		time.Sleep(pingLimit)
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "broken")
		s.Unhang()
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "broken", "subscribed")
		if n := s.Subscribers("in"); n != 1 {
			t.Fatalf("%d subscribers", n)
		}
	})
}

func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		eval(t, s, acquire("a", ""))
		refused := errors.New("refused")
		s.Down(refused)
		start := time.Now()
		if _, err := s.Eval(t.Context(), renew("a")); !errors.Is(err, refused) {
			t.Fatalf("Eval: %v", err)
		}
		if _, err := s.Do(t.Context(), time.Second, "PING"); !errors.Is(err, refused) {
			t.Fatalf("Do: %v", err)
		}
		if _, err := s.Subscribe(t.Context(), time.Second, "x", nil); !errors.Is(err, refused) {
			t.Fatalf("Subscribe: %v", err)
		}
		if time.Since(start) != 0 {
			t.Fatal("a refused call took time")
		}
		s.Up()
		mustBeHeldBy(t, s, "a")
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "broken", "subscribed")
	})
}

func TestLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Intercept(func(driver.Call) Fault { return Fault{DropReply: true} })
		start := time.Now()
		_, err := s.Eval(t.Context(), acquire("a", ""))
		mustTakeLimit(t, err, start, time.Second)
		mustBeHeldBy(t, s, "a")

		cut := errors.New("EOF")
		s.Intercept(func(driver.Call) Fault { return Fault{DropReply: true, Err: cut} })
		if _, err := s.Eval(t.Context(), call("release", four, "a", "", "0")); err != cut {
			t.Fatalf("err = %v", err)
		}
		mustBeHeldBy(t, s, "")
	})
}

func TestLostRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Intercept(func(driver.Call) Fault { return Fault{DropRequest: true} })
		start := time.Now()
		_, err := s.Eval(t.Context(), acquire("a", ""))
		mustTakeLimit(t, err, start, time.Second)
		time.Sleep(time.Minute)
		if n := s.Calls()["acquire"]; n != 0 {
			t.Fatalf("%d calls ran", n)
		}
	})
}

// A request that arrives after its caller gave up runs all the same.
func TestDelayedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Intercept(func(driver.Call) Fault { return Fault{Delay: 5 * time.Second} })
		start := time.Now()
		c := acquire("a", "")
		_, err := s.Eval(t.Context(), c)
		mustTakeLimit(t, err, start, time.Second)
		c.Keys, c.Args = nil, nil // the caller's slices are the caller's again
		time.Sleep(4 * time.Second)
		synctest.Wait()
		mustBeHeldBy(t, s, "a")
	})
}

func TestOnlyRenewalsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		bad := errors.New("bad")
		s.Intercept(func(c driver.Call) Fault {
			if c.Script.Name() == "renew" {
				return Fault{Err: bad}
			}
			return Fault{}
		})
		eval(t, s, acquire("a", ""))
		if _, err := s.Eval(t.Context(), renew("a")); err != bad {
			t.Fatalf("err = %v", err)
		}
		s.Intercept(nil)
		if got := eval(t, s, renew("a")); got != "renewed" {
			t.Fatalf("renew: %s", got)
		}
	})
}

func TestWipeAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		eval(t, s, acquire("a", ""))
		id := func() string {
			v, err := s.Do(t.Context(), time.Second, "INFO", "server")
			if err != nil {
				t.Fatal(err)
			}
			return v.(string)
		}
		before := id()
		s.Wipe()
		s.Restart()
		synctest.Wait()
		if id() == before || len(s.Keys()) != 0 {
			t.Fatalf("run_id changed: %v, keys %q", id() != before, s.Keys())
		}
		inbox.mustBe(t, "subscribed", "broken", "subscribed")
	})
}
