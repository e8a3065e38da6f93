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
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		way := p.ways(t)
		c, rival := way.client(t, 0, nil), p.client(t, 1, nil)
		for round, acquire := range []func(m taker) (*zamok.Lease, error){
			func(m taker) (*zamok.Lease, error) { return m.TryLock(t.Context()) },
			func(m taker) (*zamok.Lease, error) { return m.Lock(t.Context()) },
		} {
			name := fmt.Sprint("job", round)
			s := p.at(k.keyOf(name))
			cut := way.to(k.keyOf(name)).CutAfter(k.calls(name))
			l, err := acquire(k.of(c, name, nil))
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			receive(t, cut.Fired(), "cut")
			k.mustBe(t, s, l)
			for turn := range k.rivals {
				if _, err := k.rival(rival, name, turn).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
					t.Errorf("a rival: %v", err)
				}
			}
			release(t, l)
			if k.taken(t, s, name) {
				t.Error("one release did not free the key")
			}
			if after := tryLock(t, k.rival(rival, name, round)); after.Fence() <= l.Fence() {
				t.Errorf("fence %d after %d", after.Fence(), l.Fence())
			}
		}
	})
}

// No retry can come: new connections are refused from before the cut until the
// caller has its error.
func TestCase02LostReplyAndNoRetry(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		way := p.ways(t)
		c, rival := way.client(t, 0, nil), p.client(t, 1, nil)
		s := p.at(k.keyOf("job"))
		release(t, tryLock(t, k.of(c, "job", nil))) // there is a connection now, and the script is known
		way.all((*drivertest.Proxy).Refuse)
		cut := way.to(k.keyOf("job")).CutAfter(k.calls("job"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := goLock(ctx, k.of(c, "job", nil))
		receive(t, cut.Fired(), "cut")
		if !k.taken(t, s, "job") {
			t.Fatal("the acquire was not executed, so this case shows nothing")
		}
		cancel()
		g := receive(t, result, "error")
		if !errors.Is(g.err, context.Canceled) || errors.Is(g.err, zamok.ErrHeld) || !strings.Contains(g.err.Error(), "not acquired") {
			t.Errorf("err = %v", g.err)
		}
		way.all((*drivertest.Proxy).Accept)
		start := time.Now()
		promptly(t, time.Second, "the key is gone", func() bool { return !k.taken(t, s, "job") })
		t.Logf("gone after %v", time.Since(start))
		release(t, tryLock(t, k.rival(rival, "job", 0)))
	})
}

// The server executes the acquire only after its caller has gone, and often
// only after the first attempt to undo it.
func TestCase03TimeLimitBelowTheServersAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		undisturbed(t, func() bool {
			c := p.client(t, 0, nil)
			for i := range 10 {
				name := fmt.Sprint("job", i)
				s := p.at(k.keyOf(name))
				release(t, tryLock(t, k.of(c, name, nil)))
				s.Pause()
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // enough to send it
				_, err := k.of(c, name, nil).TryLock(ctx)
				cancel()
				asked := !starved(start, time.Now()) // else the time was perhaps over before the request
				span(30 * time.Millisecond)
				s.Resume()
				if !errors.Is(err, context.DeadlineExceeded) || asked && !errors.Is(err, zamok.ErrUnavailable) || errors.Is(err, zamok.ErrHeld) {
					t.Fatalf("err = %v", err)
				}
			}
			if !shut(t, c) { // waits for what goes on behind
				return false
			}
			for _, s := range p.nodes {
				k.mustBeGone(t, s)
			}
			return true
		})
	})
}

func TestCase05ReleaseWithACancelledContext(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		s := p.at(k.keyOf("job"))
		m := k.of(p.client(t, 0, nil), "job", nil)
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
			if k.taken(t, s, "job") {
				t.Error("the key is left")
			}
			if took := time.Since(start); slow(start, time.Now(), 100*time.Millisecond) {
				t.Errorf("took %v", took)
			}
		}
	})
}

// blocked is a call that a silent server keeps waiting.
type blocked struct {
	name string
	call func(ctx context.Context, l *zamok.Lease) error
}

// blockedCalls are those of every kind, and those that only some have.
func blockedCalls(c *zamok.Client, k leaseKind) []blocked {
	script := zamok.NewScript("noop", "return 1")
	list := []blocked{
		{"TryLock", func(ctx context.Context, l *zamok.Lease) error {
			_, err := k.of(c, "x", nil).TryLock(ctx)
			return err
		}},
		{"Lock", func(ctx context.Context, l *zamok.Lease) error {
			_, err := k.of(c, "y", nil).Lock(ctx)
			return err
		}},
		{"ExtendToken", func(ctx context.Context, l *zamok.Lease) error {
			return k.of(c, l.Name(), nil).ExtendToken(ctx, l.Token(), time.Minute)
		}},
		{"Extend", func(ctx context.Context, l *zamok.Lease) error { return l.Extend(ctx, time.Minute) }},
		{"Check", func(ctx context.Context, l *zamok.Lease) error { return l.Check(ctx) }},
		{"Run", func(ctx context.Context, l *zamok.Lease) error { _, err := l.Run(ctx, script, nil); return err }},
	}
	switch k.name {
	case mutexKind.name:
		list = append(list, blocked{"Resume", func(ctx context.Context, l *zamok.Lease) error {
			_, err := c.Mutex(l.Name(), nil).Resume(ctx, l.Token())
			return err
		}})
	case writerKind.name:
		list = append(list, blocked{"Downgrade", func(ctx context.Context, l *zamok.Lease) error { return l.Downgrade(ctx) }})
	case permitKind.name:
		list = append(list, blocked{"SetLimit", func(ctx context.Context, l *zamok.Lease) error {
			return c.Semaphore("x", 1, nil).SetLimit(ctx, 2)
		}})
	}
	return append(list, blocked{"Release", func(ctx context.Context, l *zamok.Lease) error { return l.Release(ctx) }})
}

func TestCase06NoCallOutlivesItsContext(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		way := p.ways(t)
		c := way.client(t, 0, nil)
		calls := blockedCalls(c, k)
		leases := make([]*zamok.Lease, 2*len(calls))
		for i := range leases {
			leases[i] = tryLock(t, k.of(c, fmt.Sprint("held", i), nil))
		}
		way.all((*drivertest.Proxy).Blackhole)
		for i, b := range calls {
			for j, how := range []string{"deadline", "cancel"} {
				if b.name == "Release" && how == "cancel" {
					continue // is not stopped by it, on purpose: it can be deferred
				}
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				if how == "cancel" {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(200*time.Millisecond, cancel)
				}
				err := b.call(ctx, leases[2*i+j])
				took := time.Since(start)
				cancel()
				if slow(start.Add(200*time.Millisecond), start.Add(took), 100*time.Millisecond) || took < 150*time.Millisecond {
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
		way.all((*drivertest.Proxy).Resume)
		for _, name := range []string{"x", "y"} {
			promptly(t, 2*time.Second, name+" is given up", func() bool { return !k.taken(t, p.at(k.keyOf(name)), name) })
		}
		all := c.Close() == nil // it waits no longer than what goes on behind may take
		for _, name := range []string{"x", "y"} {
			if all && k.taken(t, p.at(k.keyOf(name)), name) {
				t.Errorf("%s is left", name)
			}
		}
	})
}

func TestCase07SlowNetwork(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		way := p.ways(t)
		delay := func(d time.Duration) { way.all(func(p *drivertest.Proxy) { p.Delay(d) }) }
		c := way.client(t, 0, nil)
		delay(60 * time.Millisecond)
		start := time.Now()
		l := tryLock(t, k.of(c, "spike", nil))
		if took := time.Since(start); slow(start, time.Now(), time.Second) {
			t.Errorf("acquired after %v", took)
		}
		delay(0)
		release(t, l)

		delay(150 * time.Millisecond)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				l, err := k.of(c, fmt.Sprint("job", i), nil).Lock(t.Context())
				if err == nil {
					err = l.Release(t.Context())
				}
				if err != nil {
					t.Errorf("cycle %d: %v", i, err)
				}
			})
		}
		all.Wait()
		delay(0)
	})
}
