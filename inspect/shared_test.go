package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// got takes a lease or fails the test.
func got(t *testing.T, take func(context.Context) (*zamok.Lease, error)) *zamok.Lease {
	t.Helper()
	lease, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// stands has somebody wait until the test ends, and returns when it stands in line.
func stands(t *testing.T, take func(context.Context) (*zamok.Lease, error)) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		lease, err := take(ctx)
		if err == nil {
			err = lease.Release(context.Background())
		}
		done <- err
	}()
	t.Cleanup(cancel)
	synctest.Wait()
	return done
}

func showSemaphore(t *testing.T, in *inspect.Inspector, name string) inspect.Lock {
	t.Helper()
	l, err := in.ShowSemaphore(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestShowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "app:")
		first := service(t, server, zamok.Config{Prefix: "app:", Name: "reports"})
		second := process(t, server, "app:")
		a := got(t, first.RWMutex("config", &zamok.MutexConfig{TTL: 30 * time.Second, Reason: "reading"}).RLock)
		time.Sleep(5 * time.Second)
		b := got(t, second.RWMutex("config", nil).RLock)
		writer := stands(t, process(t, server, "app:").RWMutex("config", nil).Lock)
		reader := stands(t, process(t, server, "app:").RWMutex("config", nil).RLock)
		time.Sleep(2 * time.Second)
		l := show(t, in, "config")
		if l.Kind != inspect.KindReadLock || !l.Held || l.Holding != 2 || len(l.Holders) != 2 || l.Permits != 0 || l.NoTTL || l.Title() != "config" {
			t.Fatalf("%+v", l)
		}
		h := l.Holders[0]
		if h.Token != a.Token() || h.Fence != a.Fence() || h.Since != 7*time.Second || h.Service != "reports" || h.Reason != "reading" || h.TTL != 30*time.Second {
			t.Errorf("the first: %+v", h)
		}
		if h = l.Holders[1]; h.Token != b.Token() || h.Fence != b.Fence() || h.Since != 2*time.Second || h.Left > 15*time.Second || h.Broken != nil {
			t.Errorf("the second: %+v", h)
		}
		if l.Left < 20*time.Second || l.Left > 30*time.Second {
			t.Errorf("%v left; it lasts as long as its last reader", l.Left)
		}
		if l.Waiting != 2 || l.Waiters[0].Reads() || !l.Waiters[1].Reads() {
			t.Errorf("waiters: %+v", l.Waiters)
		}
		locks := all(t, look(t, in), "conf*")
		if len(locks) != 1 || locks[0].Holding != 2 || locks[0].Holders[0].Token != a.Token() || locks[0].Holders[1].Since != 2*time.Second {
			t.Errorf("listed: %+v", locks)
		}

		// One that became a reader has its fence, and is told as a reader.
		for _, lease := range []*zamok.Lease{a, b} {
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(<-writer, <-reader); err != nil {
			t.Fatal(err)
		}
		w := got(t, first.RWMutex("config", nil).Lock)
		if l := show(t, in, "config"); l.Kind != inspect.KindLock || l.First().Token != w.Token() {
			t.Errorf("a writer: %+v", l)
		}
		if err := w.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if l := show(t, in, "config"); l.Kind != inspect.KindReadLock || l.Holding != 1 || l.First().Token != w.Token() || l.First().Fence != w.Fence() {
			t.Errorf("a writer that reads: %+v", l)
		}
	})
}

// Readers that have gone leave a lock to its TTL; without one it stays, and nobody is
// named for it.
func TestReadersGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		server.Set("lock:a", "z1-read:5", 0)
		l := show(t, in, "a")
		if l.Kind != inspect.KindReadLock || !l.Held || l.Holding != 0 || !l.NoTTL || l.First() != (inspect.Holder{}) {
			t.Errorf("%+v", l)
		}
		var bad *zamok.ConfigError
		if _, err := in.Break(t.Context(), l, &inspect.BreakConfig{Why: "x"}); !errors.As(err, &bad) {
			t.Errorf("break: %v", err)
		}
		v := scan(t, in)
		if locks := all(t, v, ""); len(locks) != 1 || !locks[0].NoTTL {
			t.Errorf("scanned: %+v", locks)
		}
	})
}

func TestShowSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "app:")
		if l := showSemaphore(t, in, "api"); l.Held || l.Kind != inspect.KindSemaphore || l.Permits != 0 || l.Key != "app:semaphore:api" {
			t.Errorf("one that nobody uses: %+v", l)
		}
		c := service(t, server, zamok.Config{Prefix: "app:", Name: "crawler"})
		s := c.Semaphore("api", 2, &zamok.SemaphoreConfig{Reason: "a page"})
		a := got(t, s.Acquire)
		time.Sleep(3 * time.Second)
		b := got(t, s.Acquire)
		stands(t, process(t, server, "app:").Semaphore("api", 2, nil).Acquire)
		hold(t, c, "api", nil) // another thing
		time.Sleep(2 * time.Second)
		l := showSemaphore(t, in, "api")
		if !l.Held || l.Holding != 2 || l.Permits != 2 || l.Fixed || l.Title() != "semaphore:api" || l.Name != "api" || l.Waiting != 1 || l.Waiters[0].Mode != "p" {
			t.Fatalf("%+v", l)
		}
		for n, want := range []*zamok.Lease{a, b} {
			h := l.Holders[n]
			if h.Token != want.Token() || h.Fence != want.Fence() || h.Service != "crawler" || h.Reason != "a page" || h.Since != time.Duration(5-3*n)*time.Second {
				t.Errorf("permit %d: %+v", n, h)
			}
		}
		if byKey, err := in.ShowKey(t.Context(), "app:semaphore:api"); err != nil || byKey.Name != "api" || byKey.Holding != 2 {
			t.Errorf("by its key: %+v, %v", byKey, err)
		}
		v := look(t, in)
		for pattern, want := range map[string]string{"": "api|semaphore:api", "semaphore:*": "semaphore:api", "api": "api"} {
			var titles []string
			for _, l := range all(t, v, pattern) {
				titles = append(titles, l.Title())
			}
			if got := strings.Join(titles, "|"); got != want {
				t.Errorf("pattern %q: %s, want %s", pattern, got, want)
			}
		}
		if err := s.SetLimit(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if l = showSemaphore(t, in, "api"); l.Permits != 1 || !l.Fixed || l.Holding != 2 {
			t.Errorf("with a limit: %+v", l)
		}
		if _, err := in.ShowSemaphore(t.Context(), ""); err == nil {
			t.Error("no name, and no error")
		}
	})
}

// Scan finds permits that no process names.
func TestScanFindsSemaphores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "app:")
		lease := got(t, process(t, server, "app:").Semaphore("api", 1, nil).Acquire)
		<-time.After(time.Millisecond) // its process has said that it has it, and says so no more for a while
		for _, key := range server.Keys() {
			if strings.HasPrefix(key, "app:zamok:proc") {
				server.Del(key)
			}
		}
		v := scan(t, in)
		if locks := all(t, v, ""); len(locks) != 1 || locks[0].Title() != "semaphore:api" || locks[0].First().Token != lease.Token() || locks[0].Permits != 0 {
			t.Errorf("%+v", locks)
		}
	})
}

// lostTo is the loss that ended a lease, once it has.
func lostTo(t *testing.T, lease *zamok.Lease) *zamok.LostError {
	t.Helper()
	<-lease.Context().Done()
	var lost *zamok.LostError
	if !errors.As(context.Cause(lease.Context()), &lost) {
		t.Fatalf("ended by %v", context.Cause(lease.Context()))
	}
	return lost
}

func TestBreakOneOfSeveral(t *testing.T) {
	for _, kind := range []inspect.Kind{inspect.KindReadLock, inspect.KindSemaphore} {
		for _, now := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, " now=", now), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { breakOne(t, kind, now) })
			})
		}
	}
}

func breakOne(t *testing.T, kind inspect.Kind, now bool) {
	server := memory.New()
	in := inspector(t, server, "app:")
	c := process(t, server, "app:")
	take, next := c.RWMutex("a", nil).RLock, process(t, server, "app:").RWMutex("a", nil).Lock
	if kind == inspect.KindSemaphore {
		take, next = c.Semaphore("a", 2, nil).Acquire, process(t, server, "app:").Semaphore("a", 2, nil).Acquire
	}
	look := func() inspect.Lock {
		if kind == inspect.KindSemaphore {
			return showSemaphore(t, in, "a")
		}
		return show(t, in, "a")
	}
	victim, other := got(t, take), got(t, take)
	waiter := stands(t, next)
	time.Sleep(2 * time.Second)
	l := look()
	var bad *zamok.ConfigError
	if _, err := in.Break(t.Context(), l, &inspect.BreakConfig{Why: "x", Now: now}); !errors.As(err, &bad) || bad.Field != "BreakConfig.Token" {
		t.Fatalf("without a token: %v", err)
	}
	cfg := &inspect.BreakConfig{By: "ann", Why: "stuck", Token: victim.Token(), Now: now}
	b, err := in.Break(t.Context(), l, cfg)
	if err != nil || b.Asked == now || b.Holder.Token != victim.Token() || b.Fence != victim.Fence() || b.By != "ann" || b.Why != "stuck" || b.AuditErr != nil {
		t.Fatalf("%+v, %v", b, err)
	}
	if !now {
		if h := look().Holders[0]; h.Token != victim.Token() || h.Broken == nil || *h.Broken != (inspect.BrokenBy{By: "ann", Why: "stuck"}) {
			t.Errorf("asked: %+v", h)
		}
	}
	// A second one changes nothing, and tells.
	cfg.By, cfg.Why = "bob", "also"
	if b, err = in.Break(t.Context(), l, cfg); err != nil || b.Asked == now || b.By != "ann" || b.Why != "stuck" {
		t.Errorf("again: %+v, %v", b, err)
	}
	if lost := lostTo(t, victim); lost.Reason != zamok.LostBroken || lost.Operator != "ann" || lost.Why != "stuck" {
		t.Errorf("told: %+v", lost)
	}
	_ = victim.Release(t.Context())
	if err := other.Check(t.Context()); err != nil {
		t.Errorf("the other: %v", err)
	}
	if kind == inspect.KindReadLock {
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := <-waiter; err != nil {
		t.Errorf("the waiter: %v", err)
	}
	// It is over: asking it is too late, and taking it says who had.
	cfg.Now = false
	if _, err = in.Break(t.Context(), l, cfg); !errors.Is(err, inspect.ErrChanged) {
		t.Errorf("too late: %v", err)
	}
	cfg.Token = other.Token()
	if kind == inspect.KindReadLock {
		cfg.Now = true
		if _, err = in.Break(t.Context(), l, cfg); !errors.Is(err, inspect.ErrChanged) {
			t.Errorf("one that ended by itself: %v", err)
		}
	}
	for _, e := range events(t, in, "", 0) {
		if e.Kind != inspect.EventBroken || e.Now != now || e.Title() != l.Title() || e.Fence != victim.Fence() {
			t.Errorf("event: %+v", e)
		}
	}
}

func TestCheckPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		s := c.Semaphore("api", 3, nil)
		for range 3 {
			got(t, s.Acquire)
			time.Sleep(10 * time.Second)
		}
		if r := check(t, in, nil); len(r.Problems) != 0 || r.Held != 1 || r.Holders != 3 || r.LongestHold != 30*time.Second {
			t.Errorf("%+v", r)
		}
		r := check(t, in, &inspect.CheckConfig{Held: 15 * time.Second})
		if len(r.Problems) != 1 || r.Problems[0].Kind != inspect.ProblemHeld || !strings.Contains(r.Problems[0].Text, "30s by ") ||
			!strings.Contains(r.Problems[0].Text, " (and 1 more), longer than 15s") || r.Problems[0].Token != r.Problems[0].Lock.Holders[0].Token {
			t.Errorf("%+v", r.Problems)
		}
		if err := s.SetLimit(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if r = check(t, in, nil); len(r.Problems) != 1 || r.Problems[0].Kind != inspect.ProblemPermits || !strings.HasPrefix(r.Problems[0].Text, "3 of 2 permits are held") {
			t.Errorf("%+v", r.Problems)
		}
		if err := s.SetLimit(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		got(t, process(t, server, "").Semaphore("api", 5, nil).Acquire)
		time.Sleep(2 * time.Second)
		if r = check(t, in, nil); len(r.Problems) != 1 || !strings.HasSuffix(r.Problems[0].Text, "differ in how many permits there are: 3 to 5") {
			t.Errorf("%+v", r.Problems)
		}
	})
}

// A circle through readers is sure, since a writer waits for each of them; one through
// a semaphore is so only when one permit is held.
func TestDeadlocksOfSeveral(t *testing.T) {
	for what, c := range map[string]struct {
		permits int // 0: readers
		want    string
	}{
		"readers": {0, "a shared sure"}, "several permits": {2, "a semaphore:shared perhaps"}, "one permit": {1, "a semaphore:shared sure"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memory.New()
				in := inspector(t, server, "")
				c1, c2 := process(t, server, ""), process(t, server, "")
				share, want := c1.RWMutex("shared", nil).RLock, c2.RWMutex("shared", nil).Lock
				if c.permits > 0 {
					share, want = c1.Semaphore("shared", c.permits, nil).Acquire, c2.Semaphore("shared", c.permits, nil).Acquire
				}
				part := got(t, share)
				if c.permits != 1 {
					got(t, share)
				}
				a := got(t, c2.Mutex("a", nil).Lock)
				stands(t, func(context.Context) (*zamok.Lease, error) { return c1.Mutex("a", nil).Lock(part.Context()) })
				stands(t, func(context.Context) (*zamok.Lease, error) { return want(a.Context()) })
				time.Sleep(11 * time.Second)
				r := check(t, in, nil)
				if len(r.Problems) != 1 || r.Problems[0].Deadlock == nil {
					t.Fatalf("%+v", r.Problems)
				}
				d := r.Problems[0].Deadlock
				text := d.Members[0].Title() + " " + d.Members[1].Title() + map[bool]string{true: " sure", false: " perhaps"}[d.Sure]
				if text != c.want || d.Members[1].Holder.Token != part.Token() || d.Members[1].Fence != part.Fence() {
					t.Errorf("%s, want %s: %+v", text, c.want, d.Members)
				}
				_ = part.Release(t.Context())
				_ = a.Release(t.Context())
			})
		})
	}
}
