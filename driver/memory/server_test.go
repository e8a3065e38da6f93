package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func TestLockLivesAndExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		if got := eval(t, s, acquire("a", "")); got != "granted" {
			t.Fatalf("first acquire: %s", got)
		}
		if got := eval(t, s, acquire("b", "")); got != "held" {
			t.Fatalf("second acquire: %s", got)
		}
		if left, _ := s.TTL("lock"); left != 10*time.Second {
			t.Fatalf("%v left", left)
		}
		time.Sleep(10 * time.Second) // at its deadline the key is still there
		mustBeHeldBy(t, s, "a")
		time.Sleep(time.Millisecond)
		mustBeHeldBy(t, s, "")
		if got := eval(t, s, acquire("b", "")); got != "granted" {
			t.Fatalf("acquire of an expired lock: %s", got)
		}
		if n := s.Calls()["acquire"]; n != 3 {
			t.Fatalf("%d acquires counted", n)
		}
	})
}

func TestReleaseHandsOverByAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		eval(t, s, acquire("a", ""))
		if got := eval(t, s, acquire("b", "in")); got != "waits" {
			t.Fatalf("acquire of a held lock: %s", got)
		}
		if got := eval(t, s, call("release", four, "a", "", "0")); got != "handed" {
			t.Fatalf("release: %s", got)
		}
		synctest.Wait()
		v, _ := s.Get("fence")
		us := itoa(s.Now())
		inbox.mustBe(t, "subscribed", "grant b "+v+" "+us+" 2000 lock")
	})
}

func TestWhatOperatorsSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		inbox := subscribe(t, s, "in")
		eval(t, s, acquire("z1/a", ""))
		if got := eval(t, s, call("break", append(four, "broken"), "z1/a", "ask", "eve!stuck", "in")); got != "asked" {
			t.Fatalf("break: %s", got)
		}
		if got := eval(t, s, renew("z1/a")); got != "broken" {
			t.Fatalf("renewal of what was broken: %s", got)
		}
		synctest.Wait()
		inbox.mustBe(t, "subscribed", "break z1/a lock")
		for _, c := range []driver.Call{
			call("announce", []string{"procs", "procs:me"}, "me", "text", "9000"),
			call("note", []string{"events"}, "2", "9000", "a", "b", "c"),
		} {
			if v, err := s.Eval(t.Context(), c); v != "OK" || err != nil {
				t.Fatalf("%s: %v, %v", c.Script.Name(), v, err)
			}
		}
		if got := s.Entries("events"); !slices.Equal(got, []string{"b", "c"}) || s.Type("events") != "stream" {
			t.Errorf("events %q of type %s", got, s.Type("events"))
		}
		if got := s.ZMembers("procs"); !slices.Equal(got, []string{"me"}) {
			t.Errorf("clients %q", got)
		}
		time.Sleep(9*time.Second + time.Millisecond)
		if got := s.Keys(); len(got) != 2 { // the lock, with 1 s left, and the fence
			t.Errorf("keys %q", got)
		}
	})
}

func TestStepOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		eval(t, s, acquire("a", ""))
		before, _ := s.Get("fence")
		s.Step(time.Minute)
		mustBeHeldBy(t, s, "")
		s.Step(-time.Hour)
		eval(t, s, acquire("b", ""))
		if after, _ := s.Get("fence"); after <= before {
			t.Fatalf("the fence went from %s to %s", before, after)
		}
	})
}

func TestCallsThatAreNotSent(t *testing.T) {
	s := New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Eval(ctx, acquire("a", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("Eval with an ended ctx: %v", err)
	}
	c := acquire("a", "")
	c.Limit = 0
	if _, err := s.Eval(t.Context(), c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Eval without a limit: %v", err)
	}
	if n := s.Calls()["acquire"]; n != 0 {
		t.Errorf("%d calls ran", n)
	}
}

func TestEvalAllKeepsOrderAndSeparatesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Latency(time.Millisecond)
		s.SetList("list")
		got := s.EvalAll(t.Context(), []driver.Call{
			acquire("a", ""),
			call("renew", []string{"list"}, "a", "1"),
			acquire("b", ""),
			renew("a"),
		})
		for i, want := range []string{"granted", "", "held", "renewed"} {
			var se *driver.ServerError
			switch {
			case want == "":
				if !errors.As(got[i].Err, &se) || se.Code() != "WRONGTYPE" {
					t.Errorf("call %d: %v", i, got[i].Err)
				}
			case got[i].Err != nil || got[i].Reply.([]any)[0] != want:
				t.Errorf("call %d: %v", i, got[i])
			}
		}
	})
}

func TestEvalAllKeepsEachLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Intercept(func(c driver.Call) Fault { return Fault{DelayReply: 500 * time.Millisecond} })
		short, long := acquire("a", ""), renew("a")
		short.Limit = 400 * time.Millisecond
		long.Limit = 600 * time.Millisecond
		got := s.EvalAll(t.Context(), []driver.Call{long, short})
		if got[0].Err != nil || !errors.Is(got[1].Err, context.DeadlineExceeded) {
			t.Fatalf("got %v", got)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	s := New()
	var wg sync.WaitGroup
	for _, token := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			sub, err := s.Subscribe(t.Context(), time.Second, token, func(driver.Event) {})
			if err != nil {
				t.Error(err)
				return
			}
			defer sub.Close()
			for range 200 {
				_, err1 := s.Eval(t.Context(), acquire(token, token))
				_, err2 := s.Eval(t.Context(), call("release", four, token, "x|"+token+"|10000|"+token, "0"))
				if err := errors.Join(err1, err2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The engine's own allocations are measured on this driver, so its share must
// stay known and small.
func TestAllocations(t *testing.T) {
	s, ctx := New(), t.Context()
	lock, unlock := acquire("host/123/abcdefgh.1", ""), call("release", four, "host/123/abcdefgh.1", "", "0")
	n := testing.AllocsPerRun(1000, func() {
		s.Eval(ctx, lock)
		s.Eval(ctx, unlock)
	})
	if n > 9 {
		t.Errorf("a cycle allocates %v times, want 9 at most", n)
	}
}

func BenchmarkCycle(b *testing.B) {
	s, ctx := New(), b.Context()
	lock, unlock := acquire("host/123/abcdefgh.1", ""), call("release", four, "host/123/abcdefgh.1", "", "0")
	b.ReportAllocs()
	for b.Loop() {
		s.Eval(ctx, lock)
		s.Eval(ctx, unlock)
	}
}

func BenchmarkRenew(b *testing.B) {
	s, ctx := New(), b.Context()
	s.Eval(ctx, acquire("host/123/abcdefgh.1", ""))
	c := renew("host/123/abcdefgh.1")
	b.ReportAllocs()
	for b.Loop() {
		s.Eval(ctx, c)
	}
}
