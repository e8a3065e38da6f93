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

// deafSub: SUBSCRIBE is never answered.
type deafSub struct {
	driver.Driver
	subs atomic.Int32
}

func (d *deafSub) Subscribe(ctx context.Context, limit time.Duration, ch string, h func(driver.Event)) (driver.Subscription, error) {
	d.subs.Add(1)
	select {
	case <-time.After(limit):
	case <-ctx.Done():
	}
	return nil, context.DeadlineExceeded
}

func TestOpenSerial(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("job")
		c, _ := zamok.New(&deafSub{Driver: s}, nil)
		defer c.Close()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var longest time.Duration
		for range 30 {
			wg.Go(func() {
				start := time.Now()
				_, err := c.Mutex("job", &zamok.MutexConfig{Wait: time.Second}).Lock(t.Context())
				mu.Lock()
				if took := time.Since(start); took > longest {
					longest = took
					t.Log(took, err)
				}
				mu.Unlock()
			})
		}
		wg.Wait()
		if longest > 6*time.Second {
			t.Errorf("Wait 1 s, GiveUp 5 s: returned after %v", longest)
		}
	})
}

func TestOpenIgnoresCtx(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("job")
		c, _ := zamok.New(&deafSub{Driver: s}, nil)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Mutex("job", nil).Lock(ctx)
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("ctx ended at 100ms, returned after %v: %v", took, err)
		}
	})
}

// noEars: the server never counts our subscription (it is at another node, behind a proxy).
type noEars struct {
	driver.Driver
	subs, asks atomic.Int32
}

func (d *noEars) Subscribe(ctx context.Context, limit time.Duration, ch string, h func(driver.Event)) (driver.Subscription, error) {
	d.subs.Add(1)
	return d.Driver.Subscribe(ctx, limit, ch, h)
}

func (d *noEars) Eval(ctx context.Context, call driver.Call) (any, error) {
	r, err := d.Driver.Eval(ctx, call)
	if call.Script.Name() == "acquire" {
		d.asks.Add(1)
		if f, ok := r.([]any); ok && len(f) > 5 {
			f[5] = int64(0)
		}
	}
	return r, err
}

func TestDeafSpins(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("job")
		s.Latency(time.Millisecond)
		d := &noEars{Driver: s}
		c, _ := zamok.New(d, nil)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = c.Mutex("job", nil).Lock(ctx) })
		}
		wg.Wait()
		if d.subs.Load() > 10 {
			t.Errorf("%d subscriptions and %d asks in 10 s", d.subs.Load(), d.asks.Load())
		}
	})
}

func TestWaitOutage(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		s.Hold("job")
		c := s.Client()
		done := make(chan error, 1)
		go func() {
			_, err := c.Mutex("job", &zamok.MutexConfig{Wait: 30 * time.Second}).Lock(t.Context())
			done <- err
		}()
		synctest.Wait()
		pass(time.Second)
		s.Down(nil)
		err := <-done
		if !errors.Is(err, zamok.ErrUnavailable) {
			t.Errorf("ErrHeld %v, ErrUnavailable false: %v", errors.Is(err, zamok.ErrHeld), err)
		}
	})
}

// slow is a driver like the one of go-redis: a call that was given up goes on behind.
type slow struct {
	driver.Driver
	b     driver.Bounds
	stuck atomic.Int32
	seen  chan string
}

func (d *slow) Eval(ctx context.Context, call driver.Call) (any, error) {
	return d.b.Call(ctx, call.Limit, func(ctx context.Context) (any, error) {
		if call.Script.Name() == "acquire" && d.stuck.Add(-1) >= 0 {
			pass(call.Limit + 60*time.Millisecond) // SCRIPT LOAD hangs
			d.seen <- strings.Join(call.Args, " ")
			return nil, errors.New("context ended")
		}
		return d.Driver.Eval(ctx, call)
	})
}

func TestArgsRace(t *testing.T) {
	s := zamoktest.New(t, nil)
	d := &slow{Driver: s, seen: make(chan string, 10)}
	d.stuck.Store(1)
	c, err := zamok.New(d, &zamok.Config{GiveUp: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := lock(t, c.Mutex("a", nil))
	<-d.seen
	release(t, l)
}

func TestLateReply(t *testing.T) {
	bubble(t, &zamok.Config{TTL: time.Second}, func(t *testing.T, s *zamoktest.Server) {
		n := 0
		s.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "acquire" {
				if n++; n == 1 {
					return memory.Fault{DelayReply: 1500 * time.Millisecond}
				}
			}
			return memory.Fault{}
		})
		l, err := s.Client().Mutex("job", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Err(); err != nil {
			t.Errorf("Lock returned nil and a lease that is over: %v; key %s", err, s.Type("lock:job"))
		}
	})
}

func TestIdentityCache(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		lock(t, c.Mutex("x", nil))
		synctest.Wait()
		pass(100 * time.Millisecond)
		lock(t, c.Mutex("job", &zamok.MutexConfig{Reason: "sending invoices"}))
		rival := s.Client().Mutex("job", nil)
		_, err := rival.TryLock(t.Context())
		t.Log(err)
		pass(time.Minute)
		_, err = rival.TryLock(t.Context())
		if !strings.Contains(err.Error(), "invoices") {
			t.Errorf("a minute later: %v", err)
		}
		_, err = s.Client().Mutex("job", nil).TryLock(t.Context())
		t.Log("another client:", err)
	})
}

// TestTurnThatPassedUnheard: whose turn came and went, while no message arrived, stands
// in the queue anew when it asks. That is how it learns that it is deaf.
func TestTurnThatPassedUnheard(t *testing.T) {
	var mu sync.Mutex
	subscribed := map[string]int{}
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		first := lock(t, s.Client().Mutex("job", nil))
		second := waiting(t, s.Client().Mutex("job", nil))
		c, err := zamok.New(s, &zamok.Config{Trace: &zamok.Trace{Subscription: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				subscribed["deaf"]++
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.InterceptMessage(func(channel, _ string) memory.MessageFault {
			return memory.MessageFault{Drop: strings.HasSuffix(channel, c.ID())}
		})
		deaf := waiting(t, c.Mutex("job", nil)) // as the second, it asks after 4 s
		release(t, first)
		release(t, <-second) // goes to the deaf one, and the lease of 2 s ends unheard
		pass(2100 * time.Millisecond)
		s.InterceptMessage(nil)
		other := lock(t, s.Client().Mutex("job", nil))
		pass(5 * time.Second) // it asks, waits, and subscribes anew
		mu.Lock()
		if subscribed["deaf"] < 2 {
			t.Errorf("%d subscriptions, want a second one", subscribed["deaf"])
		}
		mu.Unlock()
		release(t, other)
		release(t, <-deaf)
	})
}

// TestNextAfterManyHandOvers: one that came as the seventh asks after 14 s, unless it is
// told that it has become the first.
func TestNextAfterManyHandOvers(t *testing.T) {
	bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
		holder := lock(t, s.Client().Mutex("x", nil))
		var queue []<-chan *zamok.Lease
		for range 7 {
			queue = append(queue, waiting(t, s.Client().Mutex("x", nil)))
		}
		for _, next := range queue[:6] {
			release(t, holder)
			holder = <-next
		}
		holder.Detach() // it dies
		start := time.Now()
		last := <-queue[6]
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it has the lock of the dead after %v", took)
		}
		release(t, last)
	})
}
