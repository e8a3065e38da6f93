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

func twoReplicas() *zamok.Config { return &zamok.Config{WaitReplicas: 2} }

// A call returns when the replicas have what it was granted, and not before; then its
// lease is worth a TTL, also when it was handed over for 2 s.
func TestWaitReplicas(t *testing.T) {
	bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 300*time.Millisecond)
		start := time.Now()
		first := lock(t, s.Client().Mutex("job", nil))
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("free: after %v", took)
		}
		got := waiting(t, s.Client().Mutex("job", nil))
		start = time.Now()
		release(t, first)
		second := <-got
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("handed over: after %v", took)
		}
		if left := time.Until(second.Deadline()); left < 14*time.Second {
			t.Errorf("%v are left", left)
		}
		release(t, second)
	})
}

// What the goroutines of one client pass on was waited for when it was granted.
func TestWaitReplicasOnceATurn(t *testing.T) {
	bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 0)
		m := s.Client().Mutex("job", nil)
		first := lock(t, m)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				release(t, l)
			})
		}
		synctest.Wait()
		release(t, first)
		all.Wait()
		if calls := s.Calls(); calls["renew"] != 2 || calls["acquire"] > 3 {
			t.Errorf("%v, want the first, which had no fences to pass on, and one turn", calls)
		}
	})
}

// However it is taken: the error says how many of how many, and nothing is left.
func TestTooFewReplicas(t *testing.T) {
	type client = *zamok.Client
	for name, take := range map[string]func(t *testing.T, c client) error{
		"Lock":    func(t *testing.T, c client) error { _, err := c.Mutex("job", nil).Lock(t.Context()); return err },
		"TryLock": func(t *testing.T, c client) error { _, err := c.Mutex("job", nil).TryLock(t.Context()); return err },
		"RLock":   func(t *testing.T, c client) error { _, err := c.RWMutex("job", nil).RLock(t.Context()); return err },
		"Semaphore": func(t *testing.T, c client) error {
			_, err := c.Semaphore("job", 2, nil).Acquire(t.Context())
			return err
		},
		"Multi": func(t *testing.T, c client) error {
			_, err := c.Multi([]string{"a", "job"}, nil).Lock(t.Context())
			return err
		},
		"Multi.Try": func(t *testing.T, c client) error {
			_, err := c.Multi([]string{"a", "job"}, nil).TryLock(t.Context())
			return err
		},
		"Do": func(t *testing.T, c client) error {
			return c.Mutex("job", nil).Do(t.Context(), func(context.Context) error {
				t.Error("the function ran")
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
				s.Replicas(1, 0)
				start := time.Now()
				tooFew(t, take(t, s.Client()))
				if took := time.Since(start); took != time.Second {
					t.Errorf("after %v", took)
				}
				synctest.Wait()
				if left := held(s); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		})
	}
}

func tooFew(t *testing.T, err error) {
	t.Helper()
	var e *zamok.ReplicasError
	if !errors.As(err, &e) || e.Name != "job" || e.Want != 2 || e.Got != 1 || e.After != time.Second ||
		!errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) {
		t.Errorf("err = %v", err)
	}
}

// held are the keys of what somebody has or waits for.
func held(s *zamoktest.Server) (keys []string) {
	for _, key := range s.Keys() {
		if !strings.HasPrefix(key, "zamok:fence:") && !strings.HasPrefix(key, "zamok:proc:") && key != "zamok:events" {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestTooFewReplicasForResume(t *testing.T) {
	bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 0)
		m := s.Client().Mutex("job", nil)
		token, err := lock(t, m).Detach()
		if err != nil {
			t.Fatal(err)
		}
		s.Replicas(1, 0)
		_, err = m.Resume(t.Context(), token)
		tooFew(t, err)
		synctest.Wait()
		if s.Held("job") {
			t.Error("the lock is left")
		}
	})
}

// Each who waits is granted in its turn, finds out, and gives up: by a message or by
// asking, one after the other, and nobody asks more for it.
func TestTooFewReplicasForMany(t *testing.T) {
	for name, drop := range map[string]bool{"told": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
				s.Replicas(2, 0)
				first := lock(t, s.Client().Mutex("job", nil))
				s.Replicas(1, 0)
				s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Drop: drop} })
				const waiters = 50
				var all sync.WaitGroup
				for range waiters {
					m := s.Client().Mutex("job", nil)
					all.Go(func() {
						_, err := m.Lock(t.Context())
						tooFew(t, err)
					})
				}
				synctest.Wait()
				before, start := s.Calls(), time.Now()
				release(t, first)
				all.Wait()
				took, longest := time.Since(start), waiters*time.Second
				if drop {
					longest *= 5 // each is passed over once or twice, as its message was lost
				}
				if took > longest+time.Second {
					t.Errorf("%d waiters are through after %v", waiters, took)
				}
				if calls := s.Calls(); !drop && (calls["renew"]-before["renew"] > 2*waiters || calls["release"]-before["release"] > waiters+1) {
					t.Errorf("calls: before %v, after %v", before, calls)
				}
				synctest.Wait()
				if left := held(s); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		})
	}
}

// The grant is lost before the replicas have it: the lock is taken anew.
func TestLostBeforeReplicasHaveIt(t *testing.T) {
	bubble(t, twoReplicas(), func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 0)
		for _, take := range []func() (*zamok.Lease, error){
			func() (*zamok.Lease, error) { return s.Client().Mutex("job", nil).Lock(t.Context()) },
			func() (*zamok.Lease, error) { return s.Client().Mutex("job", nil).TryLock(t.Context()) },
			func() (*zamok.Lease, error) { return s.Client().Semaphore("job", 1, nil).Acquire(t.Context()) },
			func() (*zamok.Lease, error) {
				_, err := s.Client().Multi([]string{"a", "b"}, nil).Lock(t.Context())
				return nil, err
			},
		} {
			var wiped atomic.Bool
			s.Intercept(func(c driver.Call) memory.Fault {
				if name := c.Script.Name(); (name == "renew" || name == "sem_renew") && wiped.CompareAndSwap(false, true) {
					s.Wipe()
				}
				return memory.Fault{}
			})
			l, err := take()
			if err != nil || !wiped.Load() {
				t.Errorf("err = %v, wiped: %v", err, wiped.Load())
			}
			if l != nil {
				if err := l.Check(t.Context()); err != nil {
					t.Error(err)
				}
				release(t, l)
			}
		}
	})
}

// An answer that is lost is asked for again; a refusal is an error at once, with the
// right that it needs, and the lock is given back.
func TestWaitReplicasIsNotAnswered(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 0)
		d := &unwilling{Server: s.Server, err: errors.New("connection reset by peer")}
		c, err := zamok.New(d, twoReplicas())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		d.times = 1
		release(t, lock(t, c.Mutex("job", nil)))
		for said, code := range map[string]string{
			"NOPERM this user has no permissions to run the 'wait' command":                    "NOPERM",
			"NOPERM User app has no permissions to run the 'wait' command":                     "NOPERM",
			"ERR unknown command 'WAIT', with args beginning with: '2' '1000' ":                "ERR",
			"ERR unknown command `WAIT`, with args beginning with: `2`, `1000`, ":              "ERR",
			"UNBLOCKED force unblock from blocking operation, instance state changed (master)": "",
		} {
			d.times, d.err = 1, &driver.ServerError{Text: said}
			l, err := c.Mutex("job", nil).Lock(t.Context())
			var refused *zamok.ServerError
			switch {
			case code == "" && err == nil:
				release(t, l)
			case code == "" || !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Hint, "WaitReplicas"):
				t.Errorf("%s: %v", said, err)
			}
			synctest.Wait()
			if s.Held("job") {
				t.Errorf("%s: the lock is left", said)
			}
		}
	})
}

// unwilling fails to wait, after the script has run.
type unwilling struct {
	*memory.Server
	times int
	err   error
}

func (u *unwilling) EvalWait(ctx context.Context, call driver.Call, replicas int, timeout time.Duration) (any, int64, error) {
	v, n, err := u.Server.EvalWait(ctx, call, replicas, timeout)
	if u.times--; u.times >= 0 {
		return nil, 0, u.err
	}
	return v, n, err
}

// The caller goes away, or the client is closed, while the replicas are waited for.
func TestEndsWhileReplicasAreWaitedFor(t *testing.T) {
	cfg := &zamok.Config{WaitReplicas: 1, WaitTimeout: 10 * time.Second}
	bubble(t, cfg, func(t *testing.T, s *zamoktest.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := s.Client().Mutex("job", nil).Lock(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("the context ended: %v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if s.Held("job") {
			t.Error("the context ended: the lock is left")
		}

		c := s.Client()
		got := locking(t.Context(), c.Mutex("job", nil))
		start = time.Now()
		c.Close()
		if took := time.Since(start); took > 2100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		if o := <-got; !errors.Is(o.err, zamok.ErrClosed) {
			t.Errorf("closed: %v", o.err)
		}
		if s.Held("job") {
			t.Error("closed: the lock is left")
		}
	})
}

// A TTL that is shorter than the wait: the lease is renewed meanwhile.
func TestWaitReplicasLongerThanTheTTL(t *testing.T) {
	bubble(t, &zamok.Config{WaitReplicas: 1, WaitTimeout: 5 * time.Second, TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(1, 4*time.Second)
		l := lock(t, s.Client().Mutex("job", nil))
		if err := l.Check(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, l)
	})
}

func TestWaitReplicasConfig(t *testing.T) {
	for field, cfg := range map[string]zamok.Config{
		"Config.WaitReplicas": {WaitReplicas: -1},
		"Config.WaitTimeout":  {WaitTimeout: 9 * time.Millisecond},
	} {
		var bad *zamok.ConfigError
		if _, err := zamok.New(memory.New(), &cfg); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A hand-over that lapses before the replicas have it is given up behind the back of
// the one who waits. What it takes then is another grant, which nothing of that ends.
func TestGrantAfterOneThatLapsedBeforeReplicasHadIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Replicas(2, 0)
		first := lock(t, s.Client().Mutex("job", nil))
		c, err := zamok.New(s.Server, twoReplicas())
		if err != nil {
			t.Fatal(err)
		}
		got := waiting(t, c.Mutex("job", nil))
		s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropRequest: c.Script.Name() == "renew"} })
		release(t, first)
		s.Intercept(func(c driver.Call) memory.Fault {
			switch c.Script.Name() {
			case "renew":
				return memory.Fault{DropRequest: true}
			case "release":
				return memory.Fault{Err: errors.New("connection reset by peer"), DropRequest: true}
			}
			return memory.Fault{}
		})
		pass(2900 * time.Millisecond) // the 2 s of the hand-over are over, and it is being given up
		s.Intercept(nil)
		l := <-got
		value, _ := s.Get("lock:job")
		pass(20 * time.Second)
		if now, _ := s.Get("lock:job"); l.Err() != nil || now != value {
			t.Errorf("err = %v; the key was %q, and is %q", l.Err(), value, now)
		}
		release(t, l)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Who stood in the queue does not keep the lock from the others while nobody tells
// whether replicas have it.
func TestWaiterGivesUpOnReplicas(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		d := &unwilling{Server: s.Server, times: 1 << 30, err: errors.New("connection reset by peer")}
		c, err := zamok.New(d, twoReplicas())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Mutex("job", nil).Lock(t.Context())
			done <- err
		}()
		pass(time.Second)
		release(t, first)
		start := time.Now()
		if err := <-done; !errors.Is(err, zamok.ErrUnavailable) || time.Since(start) > 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		release(t, lock(t, s.Client().Mutex("job", nil)))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
