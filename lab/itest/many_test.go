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
	// A third of it gives a slow machine a second for every 10,000 renewals.
	ttl := duration(t, "ZAMOK_ITEST_LOCKS_TTL", max(3*time.Second, time.Duration(locks)*3*time.Second/10_000))
	s := startServer(t)
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
	few, memoryOfFew := quiet(), memoryNow()
	take(locks/10, locks)
	took := time.Since(start)
	if t.Failed() {
		t.FailNow()
	}
	many, memory := quiet(), memoryNow()
	each := int64(memory-memoryOfFew) / int64(locks-locks/10)
	if each > mostBytes {
		t.Errorf("a lease takes %d bytes, at most %d are allowed", each, mostBytes)
	}
	for lease := range 3 {
		before := renewed.Load()
		span(ttl)
		if now := memoryNow(); now > memory*5/4 {
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
	if many > few+50 || quiet() > few+50 {
		t.Errorf("%d goroutines with %d locks, %d with %d, %d at the end", few, locks/10, many, locks, quiet())
	}
	t.Logf("%d locks, ttl %v, taken in %v: %d goroutines with a tenth, %d with all, %d bytes each, %d renewals, %d failed and were repeated, at the worst moment %v were left",
		locks, ttl, took, few, many, each, renewed.Load(), failed.Load(), time.Duration(least.Load()))
	if int64(len(s.keys(t))) < int64(locks) {
		t.Error("keys are missing on the server")
	}
	if err := c.Close(); errors.Is(err, zamok.ErrUnavailable) && locks > 20_000 {
		t.Logf("Close: %v: that many are not given back in its 2 s, and end by their TTL", err)
		return
	} else if err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := len(s.keys(t)); n > 16384 || s.has(t, "lock:job0") {
		t.Errorf("%d keys are left", n)
	}
}

// memoryNow is what heap and stacks take: the least within a moment, since a batch
// of renewals under way has some, and ends.
func memoryNow() uint64 {
	least := uint64(1 << 62)
	for range 5 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc+m.StackInuse)
		span(20 * time.Millisecond)
	}
	return least
}
