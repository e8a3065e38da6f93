package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/inspect"
)

func lookOn(t *testing.T, d driver.Driver) *inspect.Inspector {
	t.Helper()
	in, err := inspect.New(d, "")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// listedBy reads the locks of a view.
func listedBy(t *testing.T, v *inspect.View, pattern string) []inspect.Lock {
	t.Helper()
	var locks []inspect.Lock
	for l, err := range v.Locks(t.Context(), pattern) {
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	return locks
}

// takeAll has each client take its part of the locks.
func takeAll(t *testing.T, clients []*zamok.Client, locks int) {
	t.Helper()
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := w; i < locks; i += 32 {
				if _, err := clients[i%len(clients)].Mutex(fmt.Sprintf("job-%05d", i), nil).TryLock(t.Context()); err != nil {
					t.Errorf("lock %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// longTTL is so long that nothing is renewed while a test counts.
const longTTL = time.Hour

// 20,000 locks are listed from what the processes say, in as many requests as
// there are locks and processes, the first of them after one pipeline, and without
// a look at the keys of the database.
func TestListManyLocks(t *testing.T) {
	const locks = 20_000
	for n, lib := range map[int]library{1: libraries[0], 20: libraries[1]} {
		t.Run(fmt.Sprintf("%s/%d clients", lib.name, n), func(t *testing.T) {
			s := startServer(t)
			var clients []*zamok.Client
			for range n {
				clients = append(clients, lib.client(t, s.URL(), &zamok.Config{TTL: longTTL, Name: "many"}))
			}
			takeAll(t, clients, locks)
			in := lookOn(t, lib.new(t, s.URL()))
			// A client with that many says what it has every 20 s.
			within(t, 2*patience, "all locks are named", func() bool { return named(t, in) == locks })
			listMany(t, s, in, locks, n)
		})
	}
}

// named is how many leases the processes say that they have.
func named(t *testing.T, in *inspect.Inspector) (n int) {
	t.Helper()
	v, err := in.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range v.Processes {
		n += p.Holding
	}
	return n - v.Unnamed
}

func listMany(t *testing.T, s server, in *inspect.Inspector, locks, clients int) {
	t.Helper()
	var mem, after runtime.MemStats
	runtime.ReadMemStats(&mem)
	start, before := time.Now(), s.Commands()
	v, err := in.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	did := s.Commands().Since(before)
	if len(v.Processes) != clients || did["evalsha"] != int64(1+clients) || v.Unnamed != 0 {
		t.Errorf("%d processes, %d leases that are not named, by %v", len(v.Processes), v.Unnamed, did)
	}
	looked := time.Since(start)
	before = s.Commands()
	seen := 0
	for l, err := range v.Locks(t.Context(), "") {
		if err != nil || l.Err != nil || l.Name != fmt.Sprintf("job-%05d", seen) || !l.Held || l.First().Service != "many" || l.First().TTL != longTTL || l.First().Silent || l.First().Late != 0 {
			t.Fatalf("%d: %+v, %v", seen, l, err)
		}
		if seen == 0 {
			if did := s.Commands().Since(before); did["getex"] != 256 {
				t.Errorf("the first came when %d locks had been read: %v", did["getex"], did)
			}
		}
		seen++
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	did = s.Commands().Since(before)
	if seen != locks || did["getex"] != int64(locks) {
		t.Errorf("%d were listed, by %v", seen, did)
	}
	for name := range did {
		if name == "scan" || name == "keys" || name == "randomkey" {
			t.Errorf("the keys of the database were walked over: %v", did)
		}
	}
	each := (after.Mallocs - mem.Mallocs) / uint64(locks)
	if each > 150 {
		t.Errorf("%d allocations a lock", each)
	}
	t.Logf("looked in %v, all listed in %v, %d allocations and %d bytes a lock", looked, took, each, (after.TotalAlloc-mem.TotalAlloc)/uint64(locks))
}

// The patterns of lists are the server's own: names and patterns at random, from
// bytes that mean something in them.
func TestPatternsAreTheServers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	in := lookOn(t, libraries[0].new(t, s.URL()))
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text := func(alphabet string, most int) string {
		b := make([]byte, 1+r.IntN(most))
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	for range 60 {
		s.MustDo("SET", "lock:"+text(`aab[]^-\*?c`, 5), "foreign", "PX", "600000")
	}
	v, err := in.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	matched := 0
	for range 3000 {
		pattern := text(`aabbc**??[[]]^-\`, 7)
		var got, want []string
		for _, l := range listedBy(t, v, pattern) {
			got = append(got, l.Name)
		}
		keys, _ := s.MustDo("KEYS", "lock:"+pattern).([]any)
		for _, k := range keys {
			want = append(want, strings.TrimPrefix(k.(string), "lock:"))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q matches %q, on the server %q", seed, pattern, got, want)
		}
		matched += len(got)
	}
	if matched < 1000 {
		t.Errorf("only %d names matched a pattern", matched)
	}
}

// A view of a cluster cannot be had by a walk, and can from what processes say.
func TestLookInACluster(t *testing.T) {
	t.Parallel()
	s := startShard(t)
	d := libraries[1].new(t, s.URL())
	lease := tryLock(t, clientOn(t, d, nil).Mutex("a", nil))
	in := lookOn(t, d)
	if _, err := in.Scan(t.Context()); !errors.Is(err, inspect.ErrCluster) {
		t.Errorf("Scan: %v", err)
	}
	within(t, patience, "the lock is named", func() bool { return named(t, in) == 1 })
	v, err := in.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l := listedBy(t, v, ""); len(l) != 1 || l[0].First().Token != lease.Token() {
		t.Errorf("%+v", l)
	}
}

// An operator asks one holder to end its lease and takes another's; doing it again
// hits nobody who has come since; both holders say who did it and why, and the list
// of events too.
func TestBreakOnAServer(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		in := lookOn(t, lib.new(t, s.URL()))
		owner := lib.client(t, s.URL(), &zamok.Config{TTL: 6 * time.Second})
		asked, taken := lock(t, owner.Mutex("asked", nil)), lock(t, owner.Mutex("taken", nil))
		waiter := goLock(t.Context(), lib.client(t, s.URL(), nil).Mutex("taken", nil))
		within(t, patience, "one waits", func() bool { return s.waiting(t, "taken") == 1 })
		breakIt := func(l inspect.Lock, now bool) (inspect.Broken, error) {
			return in.Break(t.Context(), l, &inspect.BreakConfig{By: "alice", Why: "why\nnot", Now: now})
		}
		first, second := shown(t, in, "asked"), shown(t, in, "taken")
		if b, err := breakIt(first, false); err != nil || !b.Asked || b.AuditErr != nil {
			t.Fatalf("%+v, %v", b, err)
		}
		if l := shown(t, in, "asked"); l.First().Broken == nil || l.First().Broken.By != "alice" || l.First().Broken.Why != "why not" || l.First().Token != asked.Token() {
			t.Errorf("%+v", l)
		}
		b, err := breakIt(second, true)
		got := receive(t, waiter, "lease")
		if err != nil || b.Asked || got.err != nil || b.Next.Token != got.lease.Token() || b.NextFence != got.lease.Fence() {
			t.Fatalf("%+v, %v, %v", b, err, got.err)
		}
		for _, l := range []*zamok.Lease{asked, taken} {
			if lost := lossOf(t, l); lost.Reason != zamok.LostBroken || lost.Operator != "alice" || lost.Why != "why not" {
				t.Errorf("%s: %+v", l.Name(), lost)
			}
		}
		_ = asked.Release(context.Background())
		after := lock(t, lib.client(t, s.URL(), nil).Mutex("asked", nil))
		if b, err := breakIt(first, true); !errors.Is(err, inspect.ErrChanged) {
			t.Errorf("asked before, and it has ended: %+v, %v", b, err)
		}
		if b, err := breakIt(second, true); err != nil || b.Next.Token != got.lease.Token() {
			t.Errorf("taken before: %+v, %v", b, err)
		}
		for _, l := range []*zamok.Lease{after, got.lease} {
			if err := l.Check(t.Context()); err != nil {
				t.Errorf("who came after has lost %s: %v", l.Name(), err)
			}
		}
		events, err := in.Events(t.Context(), "", 0)
		broken := 0
		for _, e := range events {
			if e.Kind == inspect.EventBroken && e.By == "alice" && e.Why == "why not" && e.Holder.Client == owner.ID() && e.Ago < patience {
				broken++
			}
		}
		if err != nil || broken < 2 {
			t.Errorf("events: %+v, %v", events, err)
		}
	})
}

func shown(t *testing.T, in *inspect.Inspector, name string) inspect.Lock {
	t.Helper()
	l, err := in.Show(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Two clients that wait for each other are told of as a deadlock, and as none when
// one has given up.
func TestDeadlockOnAServer(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		in := lookOn(t, lib.new(t, s.URL()))
		one, two := lib.client(t, s.URL(), nil), lib.client(t, s.URL(), nil)
		a, b := lock(t, one.Mutex("a", nil)), lock(t, two.Mutex("b", nil))
		ctx, cancel := context.WithCancel(a.Context())
		defer cancel()
		first, second := goLock(ctx, one.Mutex("b", nil)), goLock(b.Context(), two.Mutex("a", nil))
		deadlocks := func() (n int, critical bool) {
			r, err := in.Check(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return r.Counts[inspect.ProblemDeadlock], r.Critical()
		}
		within(t, patience, "the deadlock is seen", func() bool { n, critical := deadlocks(); return n == 1 && critical })
		cancel()
		if g := receive(t, first, "end of the wait"); !errors.Is(g.err, context.Canceled) {
			t.Errorf("%v", g.err)
		}
		within(t, patience, "there is none when one has given up", func() bool { n, critical := deadlocks(); return n == 0 && !critical })
		release(t, a)
		if g := receive(t, second, "lease"); g.err != nil {
			t.Error(g.err)
		}
	})
}
