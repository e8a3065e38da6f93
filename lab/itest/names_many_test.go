package itest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// TestManyContendedNames: each name has a holder in another client, and one who
// waits. All who wait share the client's one subscription, and none has a goroutine
// but its caller's. Not in parallel with other tests: it counts the goroutines of the
// process.
func TestManyContendedNames(t *testing.T) {
	for _, lib := range libraries {
		t.Run(lib.name, func(t *testing.T) { contendedNames(t, lib, number(t, "ZAMOK_ITEST_NAMES", 10_000)) })
	}
}

func contendedNames(t *testing.T, lib library, names int) {
	s := startServer(t)
	var waiting sync.Map
	var waits atomic.Int64
	trace := &zamok.Trace{Waiting: func(i zamok.WaitingInfo) {
		if _, again := waiting.LoadOrStore(i.Name, true); !again {
			waits.Add(1)
		}
	}}
	holder := lib.client(t, s.URL(), &zamok.Config{TTL: 30 * time.Second, GiveUp: patience}) // with more it would listen too
	waiter := lib.client(t, s.URL(), &zamok.Config{Trace: trace, GiveUp: patience})
	of := func(i int) (k leaseKind, name string) { return kinds[i%len(kinds)], fmt.Sprint("job", i) }

	held := make([]*zamok.Lease, names)
	sideBySide(names, func(i int) {
		k, name := of(i)
		var err error
		if held[i], err = k.rival(holder, name, i/len(kinds)).TryLock(t.Context()); err != nil {
			t.Errorf("%s of the holder: %v", name, err)
		}
		if _, err := k.of(waiter, name, nil).TryLock(t.Context()); err == nil { // also opens what connections the library has
			t.Errorf("%s is taken twice", name)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	conns, _ := s.connections(t)
	goroutines := quiet(200*time.Millisecond, 0)

	results := make([]<-chan got, names)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const atATime = 500 // so that no request is late on a slow machine, and sent again
	for i := range results {
		k, name := of(i)
		results[i] = goLock(ctx, k.of(waiter, name, nil))
		if n := i + 1; n%atATime == 0 || n == names {
			within(t, patience, "all wait", func() bool { return waits.Load() == int64(n) })
		}
	}
	span(3 * time.Second) // each looks for itself
	now, subscribed := s.connections(t)
	// Those who ask at one time go together, so that not all of a pool has been opened.
	if most := conns + 2*10*runtime.GOMAXPROCS(0) + 1; now > most || subscribed != 1 {
		t.Errorf("%d connections before, %d now, of which %d are subscribed; want at most %d and 1", conns, now, subscribed, most)
	}
	const fewMore = 50
	more := quiet(patience, goroutines+names+fewMore) - goroutines - names
	if more > fewMore {
		t.Errorf("%d goroutines more than those of the callers", more)
	}
	t.Logf("%d names: %d connections before, %d while all wait; %d goroutines more than those of the callers", names, conns, now, more)

	start := time.Now()
	var late atomic.Int64
	sideBySide(names, func(i int) {
		if err := held[i].Release(ctx); err != nil {
			t.Errorf("the holder's release: %v", err)
		}
		g := <-results[i]
		if g.err != nil {
			t.Errorf("waiter %d: %v", i, g.err)
			return
		}
		if g.lease.Fence() <= held[i].Fence() {
			t.Errorf("waiter %d: fence %d after %d", i, g.lease.Fence(), held[i].Fence())
		}
		// What is handed over lasts for 2 s, and a slow machine may not answer in that
		// time. Then the release goes on behind.
		if err := g.lease.Release(ctx); errors.Is(err, zamok.ErrUnavailable) {
			late.Add(1)
		} else if err != nil {
			t.Errorf("waiter %d: %v", i, err)
		}
	})
	t.Logf("handed over and released in %v, %d of them late", time.Since(start), late.Load())
	within(t, patience, "nothing is left", func() bool {
		return !slices.ContainsFunc(s.keys(t), func(key string) bool {
			return !strings.HasPrefix(key, "zamok:fence:") && !strings.HasPrefix(key, "zamok:proc:")
		})
	})
}

// sideBySide calls f for each number below n, a few at a time.
func sideBySide(n int, f func(i int)) {
	const workers = 32
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	all.Wait()
}

// connections counts those of clients, and which of them are subscribed to
// something. The one that asks is none.
func (s server) connections(t testing.TB) (all, subscribed int) {
	t.Helper()
	list, _ := s.MustDo("CLIENT", "LIST").(string)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " cmd=client|list ") {
			continue
		}
		all++
		if !strings.Contains(line, " sub=0 ") {
			subscribed++
		}
	}
	return all, subscribed
}

// quiet is the least number of goroutines within a moment, or until it is at most
// enough: renewals under way have some, and end.
func quiet(moment time.Duration, enough int) int {
	least := runtime.NumGoroutine()
	await(moment, func() bool {
		least = min(least, runtime.NumGoroutine())
		return least <= enough
	})
	return least
}
