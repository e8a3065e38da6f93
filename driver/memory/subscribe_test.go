package memory

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func TestMessagesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		s.InterceptMessage(func(_, payload string) MessageFault {
			return map[string]MessageFault{"2": {Delay: time.Second}, "3": {Drop: true}}[payload]
		})
		for _, m := range []string{"1", "2", "3", "4"} {
			s.Publish("in", m)
		}
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "1") // 4 waits behind 2: they share a connection
		time.Sleep(time.Second)
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "1", "2", "4")
	})
}

func TestBreakAndReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		s.InterceptMessage(func(string, string) MessageFault { return MessageFault{Delay: time.Second} })
		s.Publish("in", "on its way")
		s.Break()
		if n := s.Publish("in", "nobody hears"); n != 0 {
			t.Fatalf("%d heard", n)
		}
		if _, err := s.Subscribe(t.Context(), time.Second, "in", nil); err == nil {
			t.Fatal("a new subscription was possible")
		}
		eval(t, s, acquire("a", "in")) // other calls work
		s.Reconnect()
		time.Sleep(time.Minute)
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "broken", "subscribed")
	})
}

func TestRefuseSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.RefuseSubscribe()
		_, err := s.Subscribe(t.Context(), time.Second, "in", nil)
		var se *driver.ServerError
		if !errors.As(err, &se) || se.Code() != "NOPERM" {
			t.Fatalf("err = %v", err)
		}
		s.AllowSubscribe()
		subscribe(t, s, "in")
	})
}

// A Subscribe that was given up leaves nothing, also when the server sees the
// request later.
func TestGivenUpSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Hang()
		start := time.Now()
		_, err := s.Subscribe(t.Context(), time.Second, "in", func(driver.Event) { t.Error("handle was called") })
		mustTakeLimit(t, err, start, time.Second)
		s.Unhang()
		if n := s.Subscribers("in"); n != 0 {
			t.Fatalf("%d subscribers", n)
		}
		s.Latency(600 * time.Millisecond) // now it sees it, and the confirmation comes too late
		start = time.Now()
		_, err = s.Subscribe(t.Context(), time.Second, "in", func(driver.Event) { t.Error("handle was called") })
		mustTakeLimit(t, err, start, time.Second)
		time.Sleep(time.Minute)
		if n := s.Subscribers("in"); n != 0 {
			t.Fatalf("%d subscribers", n)
		}
	})
}

func TestCloseEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.InterceptMessage(func(string, string) MessageFault { return MessageFault{Delay: time.Hour} })
		got := new(events)
		sub, err := s.Subscribe(t.Context(), time.Second, "in", got.handle)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Publish("in", "too late")
		sub.Close()
		sub.Close()
		if n := s.Subscribers("in"); n != 0 {
			t.Fatalf("%d subscribers", n)
		}
		got.mustBe(t, "subscribed")
		// The bubble fails the test if the goroutine has not ended.
	})
}

func TestCloseWhileBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		sub, err := s.Subscribe(t.Context(), time.Second, "in", func(driver.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		s.Break()
		sub.Close()
		s.Reconnect()
		if n := s.Subscribers("in"); n != 0 {
			t.Fatalf("a closed subscription came back")
		}
	})
}
