package itest

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// mostBytes is what a lease may take in its process, heap and stacks.
const mostBytes = 1024

// Leases of all kinds, in turn. Not in parallel with other tests: it counts the goroutines and the memory of
// the process.
func TestCase13ManyLocksInOneProcess(t *testing.T) {
	for _, lib := range libraries {
		t.Run(lib.name, func(t *testing.T) { manyLocks(t, lib, number(t, "ZAMOK_ITEST_LOCKS", 20_000)) })
	}
}

func manyLocks(t *testing.T, lib library, locks int) {
	s := startServer(t)
	// A third of it gives a machine a second for every 10,000 renewals, and one that
	// is slow twice what it takes for as many locks, which are slower.
	ttl := duration(t, "ZAMOK_ITEST_LOCKS_TTL", max(3*time.Second, time.Duration(locks)*3*time.Second/10_000, 6*ofLocks(t, lib.client(t, s.URL(), nil), locks)))
	var renewed, failed atomic.Int64
	var least atomic.Int64
	least.Store(int64(ttl))
	trace := &zamok.Trace{
		Renewed: func(i zamok.RenewedInfo) {
			if renewed.Add(1); i.Err != nil {
				failed.Add(1)
			}
			for old := least.Load(); int64(i.Left) < old && !least.CompareAndSwap(old, int64(i.Left)); old = least.Load() {
			}
		},
		Lost: func(e *zamok.LostError) {
			if e.Reason != zamok.LostClosed {
				t.Error(e)
			}
		},
	}
	c := lib.client(t, s.URL(), &zamok.Config{TTL: ttl, Trace: trace})
	leases := make([]*zamok.Lease, locks)
	take := func(from, to int) {
		sideBySide(to-from, func(i int) {
			k := kinds[i%len(kinds)]
			l, err := k.of(c, fmt.Sprint("job", from+i), nil).TryLock(t.Context())
			if err != nil {
				t.Errorf("lock %d: %v", from+i, err)
				return
			}
			leases[from+i] = l
		})
	}
	start := time.Now()
	take(0, locks/10)
	few, memoryOfFew := quiet(200*time.Millisecond, 0), memoryNow(0)
	take(locks/10, locks)
	took := time.Since(start)
	if t.Failed() {
		t.FailNow()
	}
	more := locks - locks/10
	many, memory := quiet(patience, few+50), memoryNow(memoryOfFew+uint64(more*mostBytes))
	each := int64(memory-memoryOfFew) / int64(more)
	if each > mostBytes {
		t.Errorf("a lease takes %d bytes, at most %d are allowed", each, mostBytes)
	}
	for lease := range 3 {
		before := renewed.Load()
		span(ttl)
		if now := memoryNow(memory * 5 / 4); now > memory*5/4 {
			t.Errorf("lease %d: memory grew from %d to %d MB", lease+1, memory>>20, now>>20)
		}
		if n := renewed.Load() - before; n < int64(2*locks) {
			t.Errorf("lease %d: only %d renewals", lease+1, n)
		}
	}
	for _, l := range leases {
		if l.Err() != nil {
			t.Errorf("%s: %v", l.Name(), l.Err())
		}
	}
	if end := quiet(patience, few+50); many > few+50 || end > few+50 {
		t.Errorf("%d goroutines with %d locks, %d with %d, %d at the end", few, locks/10, many, locks, end)
	}
	t.Logf("%d locks, ttl %v, taken in %v: %d goroutines with a tenth, %d with all, %d bytes each, %d renewals, %d failed and were repeated, at the worst moment %v were left",
		locks, ttl, took, few, many, each, renewed.Load(), failed.Load(), time.Duration(least.Load()))
	if int64(len(s.keys(t))) < int64(locks) {
		t.Error("keys are missing on the server")
	}
	if err := c.Close(); errors.Is(err, zamok.ErrUnavailable) {
		t.Log("Close: that many were not given back in its 2 s, and end by their TTL")
		within(t, ttl+patience, "few keys are left", func() bool { return len(s.keys(t)) <= 16384 })
	} else if err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := len(s.keys(t)); n > 16384 || s.has(t, "lock:job0") {
		t.Errorf("%d keys are left", n)
	}
}

// ofLocks is how long so many locks take on this machine, by a tenth of them.
func ofLocks(t *testing.T, c *zamok.Client, locks int) time.Duration {
	t.Helper()
	start := time.Now()
	sideBySide(locks/10, func(i int) {
		if _, err := kinds[i%len(kinds)].of(c, fmt.Sprint("probe", i), nil).TryLock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	took := time.Since(start)
	shut(t, c)
	return 10 * took
}

// memoryNow is what heap and stacks take: the least within a moment, or in a long
// time until it is at most enough, since a batch of renewals under way has some, and
// ends.
func memoryNow(enough uint64) uint64 {
	least := uint64(1 << 62)
	for tries := 0; tries < 5 || least > enough && tries < 500 && enough > 0; tries++ {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc+m.StackInuse)
		span(20 * time.Millisecond)
	}
	return least
}
