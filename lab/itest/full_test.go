package itest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/keys"
)

// What cases 25 and 26 of loss_test.go leave open: what else a full memory
// refuses, and what else goes with a lock that is evicted or wiped.

// roomy lets the memory grow again.
func roomy(s server) { s.MustDo("CONFIG", "SET", "maxmemory", "0") }

// A guarded script must not write more into a full memory only because zamok's
// own commands need none.
func TestCase25MemoryFullRefusesScripts(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t, "--maxmemory-policy", "noeviction")
		l := tryLock(t, lib.client(t, s.URL(), nil).Mutex("job", nil))
		fill(t, s)
		_, err := l.Run(t.Context(), writeScript, []string{"data"}, "x") // of a slow answer it cannot know (TestMemoryIsFullWhenAScriptIsSentAgain)
		if err == nil || errors.Is(err, zamok.ErrLost) || !strings.Contains(err.Error(), "maxmemory") {
			t.Errorf("Run: %v", err)
		}
		if s.has(t, "data") {
			t.Error("the script wrote")
		}
		if err := l.Check(t.Context()); err != nil {
			t.Errorf("the lease: %v", err)
		}
		roomy(s)
		if _, err := l.Run(t.Context(), writeScript, []string{"data"}, "x"); err != nil || s.get(t, "data") != "x" {
			t.Errorf("with room again: %v, wrote %q", err, s.get(t, "data"))
		}
		release(t, l)
	})
}

// The holder dies while the memory is full, so that nobody hands the lock over.
// Who stands in the queue gets it all the same: a full memory refuses new locks,
// and no lock is stuck because of it.
func TestCase25MemoryFullAndTheHolderDies(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t, "--maxmemory-policy", "noeviction")
		dead := tryLock(t, lib.client(t, s.URL(), &zamok.Config{TTL: lossTTL}).Mutex("job", nil))
		result := goLock(t.Context(), lib.client(t, s.URL(), nil).Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
		fill(t, s)
		if _, err := dead.Detach(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		g := receive(t, result, "lock")
		if g.err != nil {
			t.Fatal(g.err)
		}
		if took := g.at.Sub(start); slow(start, g.at, lossTTL) {
			t.Errorf("the waiter has it after %v, want the TTL of %v", took, lossTTL)
		}
		if g.lease.Fence() <= dead.Fence() {
			t.Errorf("fence %d after %d", g.lease.Fence(), dead.Fence())
		}
		if _, err := s.Do("SET", "one-more", "x"); err == nil {
			t.Error("the memory was not full any more")
		}
		release(t, g.lease)
	})
}

// Eviction takes the lock, its queue and the counter of fences together. A rival
// and the waiter race for the lock, and for a moment there are two holders. The
// first learns of it when it asks, the fences order all three, and the loser of
// the race is served after the winner.
func TestCase25EvictedWithAllThatBelongsToIt(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t, "--maxmemory-policy", "allkeys-lru")
		cfg := &zamok.Config{TTL: time.Minute} // renewal comes later than all this
		older := tryLock(t, lib.client(t, s.URL(), cfg).Mutex("job", nil))
		waiter := goLock(t.Context(), lib.client(t, s.URL(), cfg).Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
		evictAll(t, s)

		rival := goLock(t.Context(), lib.client(t, s.URL(), cfg).Mutex("job", nil))
		first, second := firstOf(t, waiter, rival)
		if older.Err() != nil {
			t.Fatalf("there were not two holders: the first had ended: %v", older.Err())
		}
		if first.Fence() <= older.Fence() {
			t.Errorf("fence %d after %d", first.Fence(), older.Fence())
		}
		// A grant that is no older than the answer to its own may have come after a first try.
		after := time.UnixMicro(first.Fence()).Add(200 * time.Millisecond)
		within(t, patience, "time passes", func() bool { return s.now(t).After(after) })
		reason(t, "Release by the older", older.Release(t.Context()), zamok.LostTaken)
		if len(second) > 0 {
			t.Fatal("two have the lock by the server's own word")
		}
		release(t, first)
		g := receive(t, second, "lock")
		if g.err != nil || g.lease.Fence() <= first.Fence() {
			t.Fatalf("the second: %+v, want a fence larger than %d", g, first.Fence())
		}
		release(t, g.lease)
	})
}

// firstOf returns the lease of who is the first of two, and the other's result.
func firstOf(t *testing.T, a, b <-chan got) (first *zamok.Lease, second <-chan got) {
	t.Helper()
	var g got
	select {
	case g = <-a:
		second = b
	case g = <-b:
		second = a
	case <-time.After(patience):
		t.Fatal("nobody gets the lock")
	}
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g.lease, second
}

// evictAll has the server evict whatever it holds, by a limit that nothing fits
// under, and makes room again.
func evictAll(t *testing.T, s server) {
	t.Helper()
	s.MustDo("CONFIG", "SET", "maxmemory", "1")
	within(t, patience, "all keys are evicted", func() bool { return s.MustDo("DBSIZE") == int64(0) })
	roomy(s)
	stats, _ := s.MustDo("INFO", "stats").(string)
	if !strings.Contains(stats, "evicted_keys:") || strings.Contains(stats, "evicted_keys:0\r") {
		t.Fatalf("the keys were not evicted: %s", stats)
	}
}

// Every call of a lease that the restart has ended says so, whichever is the
// first to ask; none of them makes the lock anew.
func TestCase26EveryCallIsTold(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		w := &witness{Driver: lib.new(t, s.URL())}
		c := clientOn(t, w, &zamok.Config{TTL: time.Minute}) // no renewal comes before the calls
		calls := map[string]func(ctx context.Context, l *zamok.Lease) error{
			"Check":   func(ctx context.Context, l *zamok.Lease) error { return l.Check(ctx) },
			"Extend":  func(ctx context.Context, l *zamok.Lease) error { return l.Extend(ctx, 2*time.Minute) },
			"Release": func(ctx context.Context, l *zamok.Lease) error { return l.Release(ctx) },
			"Run": func(ctx context.Context, l *zamok.Lease) error {
				_, err := l.Run(ctx, writeScript, []string{"data"}, "x")
				return err
			},
		}
		leases := map[string]*zamok.Lease{}
		for name := range calls {
			leases[name] = tryLock(t, c.Mutex(name, nil))
		}
		var largest int64
		for _, l := range leases {
			largest = max(largest, l.Fence())
		}
		s.Restart()
		// Connections that the restart has broken give one error each.
		for range 20 {
			_ = c.Mutex("warm", nil).TryDo(t.Context(), func(context.Context) error { return nil })
		}
		for name, call := range calls {
			l := leases[name]
			err := call(t.Context(), l)
			w.lostData(t, name, err)
			if cause := context.Cause(l.Context()); name != "Release" && !errors.Is(cause, zamok.ErrLost) {
				t.Errorf("%s: the lease's context ended with %v", name, cause)
			}
			if s.has(t, "lock:"+name) || s.has(t, "data") {
				t.Errorf("%s made something anew: %q", name, s.keys(t))
			}
			after := tryLock(t, c.Mutex(name, nil))
			if after.Fence() <= largest {
				t.Errorf("fence %d, the largest before was %d", after.Fence(), largest)
			}
			largest = max(largest, after.Fence())
			release(t, after)
		}
	})
}

// One who waits while the server restarts empty stands again, and has the lock
// once: not when the restart is over, but because nobody holds it then.
func TestCase26WaiterStandsAgain(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		cfg := &zamok.Config{TTL: failoverTTL}
		older := tryLock(t, lib.client(t, s.URL(), cfg).Mutex("job", nil))
		result := goLock(t.Context(), lib.client(t, s.URL(), cfg).Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return s.waiting(t, "job") == 1 })
		s.Restart()
		start := time.Now()
		g := receive(t, result, "lock")
		if g.err != nil {
			t.Fatal(g.err)
		}
		if took := g.at.Sub(start); slow(start, g.at, 2*time.Second) {
			t.Errorf("the waiter has it after %v", took)
		}
		if g.lease.Fence() <= older.Fence() {
			t.Errorf("fence %d after %d", g.lease.Fence(), older.Fence())
		}
		told(t, older, start, raced...)
		if v := s.get(t, "lock:job"); v != value(g.lease) {
			t.Errorf("the key holds %q, the lease is %q", v, value(g.lease))
		}
		release(t, g.lease)
		if n := s.waiting(t, "job"); n != 0 {
			t.Errorf("%d are left in the queue", n)
		}
	})
}

// The limit that docs/guarantees.md states, so that it is not taken for more: when
// the data is lost and the clock went back, together, fences do not grow. The
// counter is ahead of the clock here, as after a clock that was an hour ahead.
func TestCase26FencesNeedOneWitness(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), &zamok.Config{TTL: time.Minute})
		set, err := keys.ForName("", "job")
		if err != nil {
			t.Fatal(err)
		}
		ahead := time.Now().Add(time.Hour).UnixMicro()
		s.MustDo("SET", set.Fence(), strconv.FormatInt(ahead, 10))
		before := tryLock(t, c.Mutex("job", nil))
		if before.Fence() != ahead+1 {
			t.Fatalf("fence %d, want one more than the counter's %d", before.Fence(), ahead)
		}
		// The clock is behind, but the counter is there.
		s.MustDo("DEL", "lock:job")
		second := tryLock(t, c.Mutex("job", nil))
		if second.Fence() <= before.Fence() {
			t.Errorf("fence %d after %d", second.Fence(), before.Fence())
		}
		release(t, second)
		s.Restart()
		third := lock(t, c.Mutex("job", nil))
		if third.Fence() > second.Fence() {
			t.Errorf("fence %d after %d: better than the documents say", third.Fence(), second.Fence())
		}
		release(t, third)
	})
}

// go-redis sends again what was not answered, also to a server that refuses it by now.
func TestMemoryIsFullWhenAScriptIsSentAgain(t *testing.T) {
	s := startServer(t)
	p := placeAt(target{URL: s.URL()}, s)
	way := p.ways(t)
	l := lock(t, way.client(t, 0, nil).Mutex("job", nil))
	script := zamok.NewScript("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])")
	if _, err := l.Run(t.Context(), script, []string{"sum"}, 1); err != nil {
		t.Fatal(err)
	}
	cut := way.to("lock:job").CutAfter(func(args []string) bool { return strings.EqualFold(args[0], "EVALSHA") })
	done := make(chan error, 1)
	go func() {
		_, err := l.Run(t.Context(), script, []string{"sum"}, 1)
		done <- err
	}()
	receive(t, cut.Fired(), "cut")
	s.MustDo("CONFIG", "SET", "maxmemory", "1")
	if err := receive(t, done, "outcome"); !errors.Is(err, zamok.ErrUnknown) {
		t.Errorf("Run: %v, and it ran", err)
	}
	if sum := s.get(t, "sum"); sum != "2" {
		t.Errorf("the sum is %q, want 2", sum)
	}
}
