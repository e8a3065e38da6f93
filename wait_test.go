package zamok_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// waiting starts a Lock in the background and returns where its lease arrives.
func waiting(t *testing.T, m *zamok.Mutex) <-chan *zamok.Lease {
	t.Helper()
	got := make(chan *zamok.Lease, 1)
	go func() {
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Errorf("Lock: %v", err)
		}
		got <- l
	}()
	synctest.Wait()
	return got
}

func TestWaitLimit(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("job")
		start := time.Now()
		_, err := s.Client().Mutex("job", &zamok.MutexConfig{Wait: 3 * time.Second}).Lock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Waited != 3*time.Second || held.Place != 1 || held.Err != nil {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("waited %v", took)
		}
		synctest.Wait()
		if s.ZCard("zamok:queue:{lock:job}") != 0 {
			t.Error("still in the queue")
		}
	})
}

// Messages are hints: with every one of them lost, waiters still get the lock,
// in order, though later.
func TestEveryMessageLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
		first := lock(t, s.Client().Mutex("job", nil))
		second := waiting(t, s.Client().Mutex("job", nil))
		third := waiting(t, s.Client().Mutex("job", nil))
		start := time.Now()
		release(t, first)
		l := <-second
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("rescued by a poll after %v, want at most 2s and a little", took)
		}
		release(t, l)
		release(t, <-third)
	})
}

// A message that was delayed past what was granted proves nothing.
func TestLateMessageIsNotBelieved(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Delay: 1900 * time.Millisecond} })
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "acquire" {
				return memory.Fault{Delay: 10 * time.Second} // its polls come too late to help
			}
			return memory.Fault{}
		})
		release(t, first)
		pass(1950 * time.Millisecond)
		select {
		case l := <-got:
			left, _ := s.TTL("lock:job")
			if time.Until(l.Deadline()) > left {
				t.Errorf("believes in %v, the server keeps it for %v", time.Until(l.Deadline()), left)
			}
		default:
		}
		s.Intercept(nil)
		release(t, <-got)
	})
}

func TestCase33DeadHeadIsSkipped(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		// A waiter whose process was killed: in the queue, heard by nobody.
		s.ZAdd("zamok:queue:{lock:job}", "w|z1/dead/1/abc/1|15000|zamok:inbox:dead/1/abc", 1)
		got := waiting(t, s.Client().Mutex("job", nil))
		start := time.Now()
		release(t, first)
		release(t, <-got)
		if took := time.Since(start); took != 0 {
			t.Errorf("the dead head cost %v", took)
		}
	})
}

// A head that is alive but frozen costs its 2 s, not a TTL.
func TestFrozenHeadCostsTwoSeconds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		sub, err := s.Subscribe(t.Context(), time.Second, "frozen", func(driver.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		s.ZAdd("zamok:queue:{lock:job}", "w|z1/frozen/1/abc/1|15000|frozen", 1)
		got := waiting(t, s.Client().Mutex("job", nil))
		start := time.Now()
		release(t, first)
		release(t, <-got)
		if took := time.Since(start); took < 1900*time.Millisecond || took > 5*time.Second {
			t.Errorf("the frozen head cost %v", took)
		}
	})
}

func TestCase23PollsWhenItMayNotSubscribe(t *testing.T) {
	var warned int
	cfg := &zamok.Config{Trace: &zamok.Trace{Subscription: func(err error) {
		if err != nil {
			warned++
		}
	}}}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		s.RefuseSubscribe()
		first := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		before := s.Calls()["acquire"]
		pass(10 * time.Second)
		if polls := s.Calls()["acquire"] - before; polls < 15 || polls > 30 {
			t.Errorf("%d polls in 10 s, want about 2 a second", polls)
		}
		release(t, first)
		start := time.Now()
		l := <-got
		if took := time.Since(start); took > time.Second {
			t.Errorf("granted silently, noticed after %v", took)
		}
		pass(time.Minute)
		release(t, l)
		if warned != 1 {
			t.Errorf("said %d times that it may not subscribe, want once", warned)
		}
	})
}

// A subscription that breaks makes the server pass us over; coming back we stand
// where we stood.
func TestBrokenSubscriptionKeepsThePlace(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		second := waiting(t, s.Client().Mutex("job", nil))
		pass(time.Second)
		third := waiting(t, s.Client().Mutex("job", nil))
		s.Break()
		synctest.Wait()
		s.Reconnect()
		synctest.Wait()
		release(t, first)
		l := <-second
		select {
		case <-third:
			t.Error("the third overtook")
		default:
		}
		release(t, l)
		release(t, <-third)
	})
}

func TestCase34ForeignHolderDeletesItsKey(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Set("lock:job", "3f2b9c9e", time.Hour)
		var held *zamok.HeldError
		if _, err := s.Client().Mutex("job", nil).TryLock(t.Context()); !errors.As(err, &held) || !held.Holder.Foreign {
			t.Fatalf("TryLock: %v", err)
		}
		second := waiting(t, s.Client().Mutex("job", nil))
		third := waiting(t, s.Client().Mutex("job", nil))
		pass(time.Minute)
		s.Del("lock:job")
		start := time.Now()
		l := <-second
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("noticed after %v", took)
		}
		release(t, l)
		release(t, <-third)
	})
}

func TestEmptyForeignValueIsAHolder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Set("lock:job", "", 3*time.Second)
		m := s.Client().Mutex("job", nil)
		var held *zamok.HeldError
		if _, err := m.TryLock(t.Context()); !errors.As(err, &held) || held == nil || !held.Holder.Foreign {
			t.Errorf("TryLock: %v", err)
		}
		release(t, lock(t, m))
	})
}

func TestForeignKeyWithoutTTLIsShownAsSuch(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Set("lock:job", "some program", 0)
		_, err := s.Client().Mutex("job", nil).TryLock(t.Context())
		var held *zamok.HeldError
		if !errors.As(err, &held) || !held.NoTTL || !strings.Contains(err.Error(), "no TTL") {
			t.Errorf("err = %v", err)
		}
	})
}

func TestServerAwayAtFirst(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		m := s.Client().Mutex("job", nil)
		cut := errors.New("connection refused")
		s.Down(cut)
		for _, try := range []func(context.Context) (*zamok.Lease, error){m.Lock, m.TryLock} {
			start := time.Now()
			_, err := try(t.Context())
			if !errors.Is(err, zamok.ErrUnavailable) || !errors.Is(err, cut) || errors.Is(err, zamok.ErrHeld) {
				t.Errorf("err = %v", err)
			}
			var away *zamok.UnavailableError
			if !errors.As(err, &away) || away.Hint == "" || !strings.Contains(err.Error(), away.Hint) {
				t.Errorf("no hint in %v", err)
			}
			if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("gave up after %v", took)
			}
		}
	})
}

// Who stands in the queue rides out any outage, and so does a holder one that is
// shorter than its lease.
func TestOutageWhileWaiting(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		got := waiting(t, s.Client().Mutex("job", nil))
		pass(time.Second)
		s.Down(nil)
		pass(8 * time.Second)
		s.Up()
		pass(2 * time.Second)
		if first.Err() != nil {
			t.Fatalf("the holder: %v", first.Err())
		}
		release(t, first)
		release(t, <-got)
	})
}

// However many wait, they ask the server about once or twice a second together.
func TestWaitingIsCheap(t *testing.T) {
	for _, waiters := range []int{1, 10, 200} {
		bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
			first := lock(t, s.Client().Mutex("job", nil))
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range waiters {
				m := s.Client().Mutex("job", nil)
				wg.Go(func() { _, _ = m.Lock(ctx) })
			}
			synctest.Wait()
			before := s.Calls()["acquire"]
			pass(100 * time.Second)
			if polls := s.Calls()["acquire"] - before; polls > 100*4 {
				t.Errorf("%d waiters: %d polls in 100 s", waiters, polls)
			}
			cancel()
			wg.Wait()
			release(t, first)
		})
	}
}

// The subscription that does not tell is replaced.
func TestDeafSubscriptionIsReplaced(t *testing.T) {
	var up atomic.Int32
	cfg := &zamok.Config{Trace: &zamok.Trace{Subscription: func(err error) {
		if err == nil {
			up.Add(1)
		}
	}}}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: true} })
		first := lock(t, s.Client().Mutex("job", nil))
		c := s.Client()
		got := waiting(t, c.Mutex("job", nil))
		pass(500 * time.Millisecond)
		release(t, first)
		second := <-got
		s.InterceptMessage(nil)
		got = waiting(t, c.Mutex("other", nil))
		release(t, <-got)
		holder := lock(t, s.Client().Mutex("other", nil))
		got = waiting(t, c.Mutex("other", nil))
		release(t, holder)
		release(t, <-got)
		release(t, second)
		if up.Load() < 2 {
			t.Errorf("%d subscriptions, want a second one", up.Load())
		}
	})
}
