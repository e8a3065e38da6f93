package zamoktest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// failing is the testing.TB of a helper that must fail its test.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *failing) Errorf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

// saidBy returns how a helper fails its test, empty when it does not.
func saidBy(t *testing.T, cfg *zamok.Config, helper func(s *zamoktest.Server)) string {
	t.Helper()
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		helper(zamoktest.New(f, cfg))
	}()
	<-done
	return f.said
}

func TestHelpersFailTheTest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		helper func(s *zamoktest.Server)
		want   string
	}{
		{"held", func(s *zamoktest.Server) { s.Hold("job"); s.Hold("job") }, `Hold("job"): zamok: lock "job" not acquired: held by`},
		{"bad name", func(s *zamoktest.Server) { s.Hold("") }, `Hold(""): zamok: bad name`},
		{"free", func(s *zamoktest.Server) { s.Lose("job") }, `Lose("job"): nobody holds it`},
		{"foreign", func(s *zamoktest.Server) { s.Set(s.Key("job"), "x:1", 0); s.BreakLock("job", "x") }, `BreakLock("job"): nobody holds it who`},
		{"nobody comes", func(s *zamoktest.Server) { s.AwaitHeld("job") }, `AwaitHeld("job"): nobody holds it after 30s`},
		{"nobody waits", func(s *zamoktest.Server) { s.AwaitWaiters("job", 2) }, `AwaitWaiters("job", 2): 0 wait after 30s`},
		{"lost to another", func(s *zamoktest.Server) {
			release := s.Hold("job")
			s.Set(s.Key("job"), "somebody", 0)
			release()
		}, `release of the rival's lock "job"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if said := saidBy(t, nil, tt.helper); !strings.Contains(said, tt.want) {
					t.Errorf("it said %q, want %q", said, tt.want)
				}
			})
		})
	}
	if said := saidBy(t, &zamok.Config{TTL: 1}, func(s *zamoktest.Server) { s.Client() }); !strings.Contains(said, "Config.TTL") {
		t.Errorf("a bad configuration: %q", said)
	}
}

// What a test sees of a lock is what its holder and those who wait know,
// whatever the name and the prefix.
func TestLook(t *testing.T) {
	for _, prefix := range []string{"", "app:", "{app}:"} {
		for _, name := range []string{"job", "user{42}", "user{42}b", "a b", "lock:job", "é\n:"} {
			t.Run(prefix+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { look(t, prefix, name) })
			})
		}
	}
}

func look(t *testing.T, prefix, name string) {
	s := zamoktest.New(t, &zamok.Config{Prefix: prefix})
	m := s.Client().Mutex(name, nil)
	if s.Held(name) || s.Fence(name) != 0 || s.Waiters(name) != 0 {
		t.Errorf("nobody came yet: held %v, fence %d, %d wait", s.Held(name), s.Fence(name), s.Waiters(name))
	}
	lease, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !s.Held(name) || s.Fence(name) != lease.Fence() || s.AwaitHeld(name) != lease.Fence() {
		t.Errorf("held %v with fence %d, the lease has %d", s.Held(name), s.Fence(name), lease.Fence())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The queues of other names are not this one's.
	others := []string{"other", "x{42}lock:" + name, name + name}
	for _, other := range others {
		defer s.Hold(other)()
		wait(ctx, s.Client().Mutex(other, nil))
		s.AwaitWaiters(other, 1)
	}
	if n := s.Waiters(name); n != 0 {
		t.Errorf("%d wait, and they wait for others", n)
	}
	for n := range 3 {
		wait(ctx, s.Client().Mutex(name, nil))
		s.AwaitWaiters(name, n+1)
	}
	cancel()
	s.AwaitWaiters(name, 0)
	if err := lease.Release(t.Context()); err != nil || s.Held(name) {
		t.Errorf("released: %v, held %v", err, s.Held(name))
	}
}

// wait waits for the lock in another goroutine until ctx ends.
func wait(ctx context.Context, m *zamok.Mutex) {
	go func() { _, _ = m.Lock(ctx) }()
}

func TestLookAtWhatNobodyHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, nil)
		s.Set(s.Key("foreign"), "worker:17", time.Minute)
		if !s.Held("foreign") || s.Fence("foreign") != 0 {
			t.Errorf("a foreign value: held %v, fence %d", s.Held("foreign"), s.Fence("foreign"))
		}
		s.Hold("broken")
		fence := s.Fence("broken")
		if s.BreakLock("broken", "why: it hangs!"); s.Fence("broken") != fence {
			t.Errorf("broken: fence %d, want %d", s.Fence("broken"), fence)
		}
		lease, err := s.Client().Mutex("cron", &zamok.MutexConfig{MinHold: time.Minute}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !s.Held("cron") || s.Fence("cron") != lease.Fence() {
			t.Errorf("it rests: held %v, fence %d, want %d", s.Held("cron"), s.Fence("cron"), lease.Fence())
		}
		time.Sleep(time.Minute + time.Second)
		if s.Held("cron") || s.Held("foreign") {
			t.Error("held although its time is over")
		}
	})
}

// An operator who asks twice is the one who asked first, and a lock that rests has
// nobody who could be asked.
func TestBreakLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, nil)
		lease, err := s.Client().Mutex("job", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.BreakLock("job", "first: now!")
		s.BreakLock("job", "second")
		<-lease.Context().Done()
		var lost *zamok.LostError
		if err := lease.Err(); !errors.As(err, &lost) || lost.Reason != zamok.LostBroken || lost.Why != "first: now!" || lost.Operator != "zamoktest" {
			t.Errorf("got %v, want LostBroken by the first", err)
		}
		said := saidBy(t, nil, func(s *zamoktest.Server) {
			rests, err := s.Client().Mutex("cron", &zamok.MutexConfig{MinHold: time.Minute}).Lock(t.Context())
			if err == nil {
				err = rests.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			s.BreakLock("cron", "x")
		})
		if !strings.Contains(said, "nobody holds it who could be asked") {
			t.Errorf("of a lock at rest it said %q", said)
		}
	})
}

// Looking sends nothing, so that a test which counts calls counts its own.
func TestLookingIsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, nil)
		s.Hold("job")
		synctest.Wait()
		before := fmt.Sprint(s.Calls())
		s.Down(nil)
		s.AwaitHeld("job")
		s.AwaitWaiters("job", 0)
		if after := fmt.Sprint(s.Calls()); after != before {
			t.Errorf("calls were %s, are %s", before, after)
		}
	})
}

// Whatever a test has broken and not mended, it ends at once: Close is not kept
// waiting, nor does a bubble find a goroutine that is left.
func TestEndsAtOnce(t *testing.T) {
	for name, fault := range map[string]func(s *zamoktest.Server){
		"hang":  func(s *zamoktest.Server) { s.Hang() },
		"down":  func(s *zamoktest.Server) { s.Down(nil) },
		"break": func(s *zamoktest.Server) { s.Break() },
		"intercept": func(s *zamoktest.Server) {
			s.Intercept(func(driver.Call) memory.Fault { return memory.Fault{DropRequest: true} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begin time.Time
				s := zamoktest.New(t, nil)
				t.Cleanup(func() { // runs after that of the clients below
					if took := time.Since(begin); took > 0 {
						t.Errorf("closed after %v", took)
					}
					if s.Held("job") || s.Held("other") {
						t.Error("a lock is left")
					}
				})
				s.Hold("job")
				c := s.Client()
				if _, err := c.Mutex("other", nil).Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
				wait(context.Background(), s.Client().Mutex("job", nil))
				s.AwaitWaiters("job", 1)
				fault(s)
				begin = time.Now()
			})
		})
	}
}

// Without a bubble it is the same in real time.
func TestWithoutABubble(t *testing.T) {
	s := zamoktest.New(t, &zamok.Config{TTL: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	release := s.Hold("job")
	got := make(chan error, 1)
	go func() {
		got <- s.Client().Mutex("job", nil).Do(t.Context(), func(ctx context.Context) error {
			s.Lose("job")
			<-ctx.Done()
			return nil
		})
	}()
	s.AwaitWaiters("job", 1)
	release()
	release()
	if err := <-got; !errors.Is(err, zamok.ErrLost) {
		t.Errorf("got %v, want ErrLost", err)
	}
}

// A server is a driver, for code that makes its own client.
func TestServerIsADriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, nil)
		var d driver.Driver = s
		c, err := zamok.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		release := s.Hold("job")
		defer release()
		if _, err := c.Mutex("job", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
	})
}
