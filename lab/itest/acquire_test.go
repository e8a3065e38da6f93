package itest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

func TestCase01LostReplyThenRetry(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		p := drivertest.StartProxy(t, s.Addr())
		c, rival := lib.client(t, p.URL(), nil), lib.client(t, s.URL(), nil)
		for round, acquire := range []func(m *zamok.Mutex) (*zamok.Lease, error){
			func(m *zamok.Mutex) (*zamok.Lease, error) { return m.TryLock(t.Context()) },
			func(m *zamok.Mutex) (*zamok.Lease, error) { return m.Lock(t.Context()) },
		} {
			name := fmt.Sprint("job", round)
			cut := p.CutAfter(callOn(name))
			l, err := acquire(c.Mutex(name, nil))
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			receive(t, cut.Fired(), "cut")
			if v := s.get(t, "lock:"+name); v != value(l) {
				t.Errorf("the key holds %q, the lease is %q", v, value(l))
			}
			if _, err := rival.Mutex(name, nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
				t.Errorf("a rival: %v", err)
			}
			release(t, l)
			if s.has(t, "lock:"+name) {
				t.Error("one release did not free the key")
			}
			if after := tryLock(t, rival.Mutex(name, nil)); after.Fence() <= l.Fence() {
				t.Errorf("fence %d after %d", after.Fence(), l.Fence())
			}
		}
	})
}

// No retry can come: new connections are refused from before the cut until the
// caller has its error.
func TestCase02LostReplyAndNoRetry(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		p := drivertest.StartProxy(t, s.Addr())
		c, rival := lib.client(t, p.URL(), nil), lib.client(t, s.URL(), nil)
		release(t, tryLock(t, c.Mutex("warm", nil))) // there is a connection now, and the script is known
		p.Refuse()
		cut := p.CutAfter(callOn("job"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := goLock(ctx, c.Mutex("job", nil))
		receive(t, cut.Fired(), "cut")
		if !s.has(t, "lock:job") {
			t.Fatal("the acquire was not executed, so this case shows nothing")
		}
		cancel()
		g := receive(t, result, "error")
		if !errors.Is(g.err, context.Canceled) || errors.Is(g.err, zamok.ErrHeld) || !strings.Contains(g.err.Error(), "not acquired") {
			t.Errorf("err = %v", g.err)
		}
		p.Accept()
		start := time.Now()
		within(t, factor*time.Second, "the key is gone", func() bool { return !s.has(t, "lock:job") })
		t.Logf("gone after %v", time.Since(start))
		release(t, tryLock(t, rival.Mutex("job", nil)))
	})
}

// The server executes the acquire only after its caller has gone, and often
// only after the first attempt to undo it.
func TestCase03TimeLimitBelowTheServersAnswer(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		d := lib.new(t, s.URL())
		c := clientOn(t, d, nil)
		release(t, tryLock(t, c.Mutex("warm", nil)))
		for i := range 10 {
			name := fmt.Sprint("job", i)
			s.MustDo("CLIENT", "PAUSE", "50", "ALL")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := c.Mutex(name, nil).TryLock(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) {
				t.Fatalf("err = %v", err)
			}
		}
		if err := c.Close(); err != nil { // waits for what goes on behind
			t.Fatal(err)
		}
		for _, k := range s.keys(t) {
			if strings.HasPrefix(k, "lock:") {
				t.Errorf("%s is left with a TTL of %v", k, s.pttl(t, k))
			}
		}
	})
}

func TestCase07SlowNetwork(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		p := drivertest.StartProxy(t, s.Addr())
		c := lib.client(t, p.URL(), nil)
		p.Delay(60 * time.Millisecond)
		start := time.Now()
		l := tryLock(t, c.Mutex("spike", nil))
		if took := time.Since(start); took > factor*time.Second {
			t.Errorf("acquired after %v", took)
		}
		p.Delay(0)
		release(t, l)

		p.Delay(150 * time.Millisecond)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				l, err := c.Mutex(fmt.Sprint("job", i), nil).Lock(t.Context())
				if err == nil {
					err = l.Release(t.Context())
				}
				if err != nil {
					t.Errorf("cycle %d: %v", i, err)
				}
			})
		}
		all.Wait()
		p.Delay(0)
	})
}

func TestCase05ReleaseWithACancelledContext(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		m := lib.client(t, s.URL(), nil).Mutex("job", nil)
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			l, err := m.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			start := time.Now()
			if err := l.Release(ctx); err != nil {
				t.Errorf("Release: %v", err)
			}
			if s.has(t, "lock:job") {
				t.Error("the key is left")
			}
			if took := time.Since(start); took > factor*100*time.Millisecond {
				t.Errorf("took %v", took)
			}
		}
	})
}

func TestCase06NoCallOutlivesItsContext(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		p := drivertest.StartProxy(t, s.Addr())
		c := lib.client(t, p.URL(), nil)
		const calls = 7
		leases := make([]*zamok.Lease, 2*calls)
		for i := range leases {
			leases[i] = tryLock(t, c.Mutex(fmt.Sprint("held", i), nil))
		}
		p.Blackhole()
		script := zamok.NewScript("noop", "return 1")
		begin := []struct {
			name string
			call func(ctx context.Context, l *zamok.Lease) error
		}{
			{"TryLock", func(ctx context.Context, l *zamok.Lease) error {
				_, err := c.Mutex("x", nil).TryLock(ctx)
				return err
			}},
			{"Lock", func(ctx context.Context, l *zamok.Lease) error { _, err := c.Mutex("y", nil).Lock(ctx); return err }},
			{"Resume", func(ctx context.Context, l *zamok.Lease) error {
				_, err := c.Mutex(l.Name(), nil).Resume(ctx, l.Token())
				return err
			}},
			{"Extend", func(ctx context.Context, l *zamok.Lease) error { return l.Extend(ctx, time.Minute) }},
			{"Check", func(ctx context.Context, l *zamok.Lease) error { return l.Check(ctx) }},
			{"Run", func(ctx context.Context, l *zamok.Lease) error { _, err := l.Run(ctx, script, nil); return err }},
			{"Release", func(ctx context.Context, l *zamok.Lease) error { return l.Release(ctx) }},
		}
		for i, b := range begin {
			for j, how := range []string{"deadline", "cancel"} {
				if b.name == "Release" && how == "cancel" {
					continue // is not stopped by it, on purpose: it can be deferred
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				if how == "cancel" {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(200*time.Millisecond, cancel)
				}
				start := time.Now()
				err := b.call(ctx, leases[2*i+j])
				took := time.Since(start)
				cancel()
				if took > 200*time.Millisecond+factor*100*time.Millisecond || took < 150*time.Millisecond {
					t.Errorf("%s by %s returned after %v", b.name, how, took)
				}
				if !errors.Is(err, zamok.ErrUnavailable) && !errors.Is(err, zamok.ErrUnknown) {
					t.Errorf("%s by %s: %v", b.name, how, err)
				}
				if errors.Is(err, zamok.ErrHeld) || errors.Is(err, zamok.ErrLost) {
					t.Errorf("%s by %s takes silence for an answer: %v", b.name, how, err)
				}
			}
		}
		p.Resume()
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, name := range []string{"x", "y"} {
			if s.has(t, "lock:"+name) {
				t.Errorf("lock:%s is left", name)
			}
		}
	})
}
