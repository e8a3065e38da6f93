package zamok_test

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/zamoktest"
)

// turn returns a lease whose turn has just begun.
func turn(t *testing.T, m *zamok.Mutex) *zamok.Lease {
	t.Helper()
	first := lock(t, m)
	next := waiting(t, m) // it stands at the server, for a block of fences
	release(t, first)
	return <-next
}

// sent returns how many scripts of each name f has sent.
func sent(s *zamoktest.Server, f func()) map[string]int {
	before := s.Calls()
	f()
	synctest.Wait()
	after := s.Calls()
	maps.DeleteFunc(after, func(name string, n int) bool { return n == before[name] || name == "announce" })
	for name := range after {
		after[name] -= before[name]
	}
	return after
}

func TestALeaseIsPassedOnWithoutARequest(t *testing.T) {
	var acquired zamok.AcquiredInfo
	var released zamok.ReleasedInfo
	cfg := &zamok.Config{Trace: &zamok.Trace{
		Acquired: func(i zamok.AcquiredInfo) { acquired = i },
		Released: func(i zamok.ReleasedInfo) { released = i },
	}}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		old := turn(t, m)
		pass(time.Millisecond)
		type key struct{}
		got := make(chan *zamok.Lease, 1)
		go func() {
			l, err := m.Lock(context.WithValue(t.Context(), key{}, "its own"))
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		pass(time.Millisecond)
		value, _ := s.Get("lock:job")
		var l *zamok.Lease
		if n := sent(s, func() { release(t, old); l = <-got }); len(n) > 0 {
			t.Errorf("sent %v, want nothing", n)
		}
		if l.Err() != nil || l.Fence() != old.Fence()+1 || l.Context().Value(key{}) != "its own" || zamok.LeaseFrom(l.Context()) != l {
			t.Errorf("%v, fences %d, %d", l.Err(), old.Fence(), l.Fence())
		}
		if now, _ := s.Get("lock:job"); now != value {
			t.Errorf("the value was %q and is %q", value, now)
		}
		if !acquired.HandedOver || acquired.Fence != l.Fence() || acquired.Waited != time.Millisecond || !released.HandedOver || released.Held != 2*time.Millisecond {
			t.Errorf("told %+v, %+v", acquired, released)
		}

		// Nothing of the one before is of use any more.
		if !errors.Is(context.Cause(old.Context()), zamok.ErrReleased) {
			t.Error("its context goes on")
		}
		_, detached := old.Detach()
		_, run := old.Run(t.Context(), zamok.NewScript("x", "return 1"), nil)
		for _, err := range []error{old.Err(), old.Check(t.Context()), old.Extend(t.Context(), time.Minute), old.Release(t.Context()), detached, run} {
			if !errors.Is(err, zamok.ErrReleased) {
				t.Errorf("err = %v, want ErrReleased", err)
			}
		}
		if old.Token() == l.Token() {
			t.Errorf("both have the token %s", l.Token())
		}
		if err := m.ReleaseToken(t.Context(), old.Token()); !errors.Is(err, zamok.ErrLost) {
			t.Errorf("its token released something: %v", err)
		}
		if err := l.Check(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, l)
		if s.Held("job") {
			t.Error("held after the last release")
		}
	})
}

// TestATurnEnds: the others wait no longer than its time, one holding, and one
// hand-over; then it is their turn.
func TestATurnEnds(t *testing.T) {
	bubble(t, &zamok.Config{HandOver: 20 * time.Millisecond}, func(t *testing.T, s *zamoktest.Server) {
		ours, other := s.Client().Mutex("job", nil), s.Client().Mutex("job", nil)
		l := turn(t, ours)
		start, fence := time.Now(), l.Fence()
		theirs := waiting(t, other)
		for n := 0; ; n++ {
			next := waiting(t, ours)
			pass(3 * time.Millisecond)
			release(t, l)
			synctest.Wait()
			select {
			case l = <-next:
				if l.Fence() != fence+1 {
					t.Fatalf("fence %d after %d", l.Fence(), fence)
				}
				fence++
				continue
			case l = <-theirs:
			}
			if took := time.Since(start); took != 21*time.Millisecond || n != 6 {
				t.Errorf("theirs after %v and %d passes, want 21ms and 6", took, n)
			}
			if l.Fence() < fence+4000 {
				t.Errorf("fence %d in the block of %d", l.Fence(), fence)
			}
			release(t, l)
			l = <-next
			if l.Fence() <= fence+4000 {
				t.Errorf("fence %d again", l.Fence())
			}
			release(t, l)
			return
		}
	})
}

// TestWhatIsNotPassedOn goes to the server and to the next one from there.
func TestWhatIsNotPassedOn(t *testing.T) {
	script := zamok.NewScript("slow", "return 1")
	drop := func(name string, f memory.Fault) func(driver.Call) memory.Fault {
		return func(c driver.Call) memory.Fault {
			if c.Script.Name() == name {
				return f
			}
			return memory.Fault{}
		}
	}
	type state struct {
		*testing.T
		s *zamoktest.Server
		l *zamok.Lease
	}
	short := &zamok.MutexConfig{TTL: 10 * time.Second}
	for _, c := range []struct {
		why    string
		passed bool
		first  *zamok.MutexConfig
		next   *zamok.MutexConfig
		do     func(t state)
	}{
		{why: "nothing happened", passed: true, do: func(state) {}},
		{why: "its token is known", do: func(t state) {
			t.l.Token()
			synctest.Wait()
			if t.s.Waiters("job") != 1 {
				t.Error("the next one did not go to the server at once")
			}
		}},
		{why: "its time is over", do: func(state) { pass(5 * time.Millisecond) }},
		{why: "it is nearly over", passed: true, do: func(state) { pass(5*time.Millisecond - 1) }},
		{why: "it was asked for", passed: true, do: func(t state) {
			if err := t.l.Check(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{why: "it was extended", do: func(t state) {
			if err := t.l.Extend(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
		}},
		{why: "nobody knows whether it was extended", do: func(t state) {
			t.s.Intercept(drop("renew", memory.Fault{Err: errors.New("reset")}))
			if err := t.l.Extend(t.Context(), time.Minute); err == nil {
				t.Error("extended")
			}
			t.s.Intercept(nil)
		}},
		{why: "a script ran", passed: true, do: func(t state) {
			if _, err := t.l.Run(t.Context(), script, nil); err != nil {
				t.Error(err)
			}
		}},
		{why: "a script may run yet", do: func(t state) {
			t.s.Intercept(drop("guard:slow", memory.Fault{Err: errors.New("reset")}))
			if _, err := t.l.Run(t.Context(), script, nil); !errors.Is(err, zamok.ErrUnknown) {
				t.Error(err)
			}
			t.s.Intercept(nil)
		}},
		{why: "a script is under way", do: func(t state) {
			t.s.Intercept(drop("guard:slow", memory.Fault{Delay: 2 * time.Millisecond}))
			go func() { _, _ = t.l.Run(context.Background(), script, nil) }()
			synctest.Wait()
			t.s.Intercept(nil)
		}},
		{why: "a renewal is under way", do: func(t state) {
			t.s.Intercept(drop("renew", memory.Fault{Delay: 2 * time.Millisecond}))
			value, _ := t.s.Get("lock:job")
			token, _, _ := strings.Cut(value, ":")
			breakIt(t.T, t.s, "job", token, "ask") // the client listens, and asks at once
			pass(time.Millisecond)
			t.s.Intercept(nil)
		}},
		{why: "the next one has another TTL", next: short, do: func(state) {}},
		{why: "both have another TTL", passed: true, first: short, next: short, do: func(state) {}},
		{why: "the next one has MinHold", next: &zamok.MutexConfig{MinHold: time.Second}, do: func(state) {}},
		{why: "the next one has MaxHold", passed: true, next: &zamok.MutexConfig{MaxHold: time.Second}, do: func(state) {}},
		{why: "it has MinHold", first: &zamok.MutexConfig{MinHold: time.Millisecond}, do: func(state) { pass(2 * time.Millisecond) }},
		{why: "it is an exact key of the same lock", passed: true, next: &zamok.MutexConfig{Key: "lock:job"}, do: func(state) {}},
	} {
		t.Run(strings.ReplaceAll(c.why, " ", "-"), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
				s.Define(script, func(*memory.Tx, []string, []string, int64) (any, error) { return int64(1), nil })
				client := s.Client()
				l := turn(t, client.Mutex("job", c.first))
				next := waiting(t, client.Mutex("job", c.next))
				c.do(state{t, s, l})
				synctest.Wait()
				n := sent(s, func() { release(t, l) })
				if passed := n["release"] == 0; passed != c.passed {
					t.Errorf("passed on: %v; sent %v", passed, n)
				}
				got := <-next
				if got.Fence() <= l.Fence() {
					t.Errorf("fence %d after %d", got.Fence(), l.Fence())
				}
				if err := got.Check(t.Context()); err != nil {
					t.Error(err)
				}
				pass(30 * time.Second) // renewed as any
				if c.next == nil || c.next.MaxHold == 0 {
					release(t, got)
				} else if err := got.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
					t.Errorf("after MaxHold: %v", err)
				}
				pass(time.Second)
				if s.Held("job") {
					t.Error("left")
				}
			})
		})
	}
}

// TestAFrontIsNotPassedOver: the first of the line went to the server while the turn is
// open for those behind it.
func TestAFrontIsNotPassedOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		client := s.Client()
		l := turn(t, client.Mutex("job", nil))
		first := locking(t.Context(), client.Mutex("job", &zamok.MutexConfig{TTL: 10 * time.Second}))
		second := locking(t.Context(), client.Mutex("job", nil))
		release(t, l)
		synctest.Wait()
		select {
		case <-second:
			t.Fatal("the second has it")
		case end := <-first:
			release(t, end.lease)
		}
		release(t, (<-second).lease)
	})
}

// TestALostLeaseIsNotPassedOn, also within its turn.
func TestALostLeaseIsNotPassedOn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Latency(time.Millisecond)
		m := s.Client().Mutex("job", nil)
		l := turn(t, m)
		next := locking(t.Context(), m)
		s.Set("lock:job", "z1/other/7/abc/1:9000000000000000", time.Second)
		if err := l.Check(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
			t.Error(err)
		}
		start := time.Now()
		end := <-next
		if took := end.at.Sub(start); end.err != nil || took < 900*time.Millisecond {
			t.Errorf("after %v: %v", took, end.err)
		}
		release(t, end.lease)
	})
}

// TestTheNextButOneDoesNotWaitForATurnThatIsNotForIt.
func TestTheNextButOneDoesNotWaitForATurnThatIsNotForIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		client := s.Client()
		l := turn(t, client.Mutex("job", nil))
		first := locking(t.Context(), client.Mutex("job", nil))
		second := locking(t.Context(), client.Mutex("job", &zamok.MutexConfig{TTL: 10 * time.Second}))
		release(t, l)
		synctest.Wait()
		if s.Waiters("job") != 1 {
			t.Error("it did not go to the server at once")
		}
		release(t, (<-first).lease)
		release(t, (<-second).lease)
	})
}

// TestABrokenLeaseIsNotPassedOn, nor is who comes next the one that was broken.
func TestABrokenLeaseIsNotPassedOn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := turn(t, m)
		next := locking(t.Context(), m)
		value, _ := s.Get("lock:job")
		token, _, _ := strings.Cut(value, ":")
		breakIt(t, s, "job", token, "ask")
		<-l.Context().Done()
		synctest.Wait()
		if s.Waiters("job") != 1 {
			t.Error("the next one did not go to the server at once")
		}
		wantBroken(t, l.Release(t.Context())) // within its turn
		got := (<-next).lease
		if err := got.Check(t.Context()); err != nil || got.Fence() < l.Fence()+4000 {
			t.Errorf("fence %d after %d: %v", got.Fence(), l.Fence(), err)
		}
		release(t, got)
	})
}

// TestALossWithinABlock: the counter on the server stands at the end of the block, and
// that tells what became of the lease.
func TestALossWithinABlock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		l := turn(t, m)
		s.Lose("job")
		release(t, l)               // nobody had anything after us
		pass(10 * time.Millisecond) // until the block is in the past
		l = turn(t, m)
		set, err := keys.ForName("", "job")
		if err != nil {
			t.Fatal(err)
		}
		s.Set(set.Fence(), strconv.FormatInt(l.Fence()+10, 10), 0) // of an older state
		s.Lose("job")
		var lost *zamok.LostError
		if err := l.Check(t.Context()); !errors.As(err, &lost) || lost.Reason != zamok.LostData {
			t.Errorf("err = %v", err)
		}
	})
}
