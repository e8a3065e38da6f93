package itest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
)

// One of three shards hangs for several leases: what is held at the others is renewed
// as if nothing had happened, and what was held there is lost in time.
func TestCase12OneShardHangs(t *testing.T) {
	const ttl = 3 * time.Second
	hang := duration(t, "ZAMOK_ITEST_HANG", 8*time.Second)
	each(t, func(t *testing.T, lib library) {
		cluster := drivertest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000")
		sick := func(name string) bool { return keys.Slot("lock:"+name) < 16384/3 }
		var renewed, failed, lost atomic.Int64
		c := clientOn(t, lib.cluster(t, cluster.Addrs()), &zamok.Config{TTL: ttl, Trace: &zamok.Trace{
			Renewed: func(i zamok.RenewedInfo) {
				switch {
				case sick(i.Name):
				case i.Err != nil:
					failed.Add(1)
					t.Log(i.Name, i.Err)
				default:
					renewed.Add(1)
				}
			},
			Lost: func(e *zamok.LostError) {
				if !sick(e.Name) && e.Reason != zamok.LostClosed {
					lost.Add(1)
				}
			},
		}})
		leases := make([]*zamok.Lease, 1000)
		var healthy int64
		for i := range leases {
			name := fmt.Sprint("job", i)
			leases[i] = tryLock(t, c.Mutex(name, nil))
			if !sick(name) {
				healthy++
			}
		}
		hung := server{cluster.Nodes()[0]}
		hung.Pause()
		before := renewed.Load()
		span(hang)
		if n := renewed.Load() - before; n < healthy*int64(2*hang/ttl) {
			t.Errorf("%d renewals of %d leases in %v", n, healthy, hang)
		}
		if failed.Load()+lost.Load() > 0 {
			t.Errorf("at the shards that answer %d renewals failed, and %d leases were lost", failed.Load(), lost.Load())
		}
		for _, l := range leases {
			if (l.Err() != nil) != sick(l.Name()) {
				t.Fatalf("%s: %v", l.Name(), l.Err())
			}
		}
		release(t, tryLock(t, c.Mutex("another"+outside(sick), nil)))
		hung.Resume()
		within(t, patience, "the shard that hung works again", func() bool {
			l, err := c.Mutex("job0 again{"+inside(sick)+"}", nil).TryLock(t.Context())
			return err == nil && l.Release(t.Context()) == nil
		})
	})
}

// outside returns what makes "another" a name for which is says no, and inside a hash
// tag for which it says yes.
func outside(is func(string) bool) string {
	for i := 0; ; i++ {
		if !is(fmt.Sprint("another", i)) {
			return fmt.Sprint(i)
		}
	}
}

func inside(is func(string) bool) string {
	for i := 0; ; i++ {
		if is(fmt.Sprintf("{%d}", i)) {
			return fmt.Sprint(i)
		}
	}
}

// Names of all sorts on three shards: they are taken, waited for and handed over,
// from a client of one library to one of the other.
func TestCase28NamesOnThreeShards(t *testing.T) {
	t.Parallel()
	p := placeOf(drivertest.StartCluster(t, 3, 0))
	first, second := p.client(t, 0, nil), p.client(t, 1, nil)
	for i, name := range []string{
		"report", "a b", "ключ", "{user}:1", "{user}:2", "a{b}c", "x{y}{z}", "user}{42}", "line\nbreak", strings.Repeat("n", 512),
	} {
		if i%2 == 1 {
			first, second = second, first
		}
		held := lock(t, first.Mutex(name, nil))
		waiter := goLock(t.Context(), second.Mutex(name, nil))
		set, err := keys.ForName("", name)
		if err != nil {
			t.Fatal(err)
		}
		within(t, patience, "somebody waits for "+name, func() bool { return p.at(set.Queue()).MustDo("ZCARD", set.Queue()) == int64(1) })
		inbox := set.Inbox(second.ID())
		promptly(t, time.Second, "the primary knows who waits for "+name, func() bool {
			return p.at(set.Lock).MustDo("PUBSUB", "SHARDNUMSUB", inbox).([]any)[1] == int64(1)
		})
		start := time.Now()
		release(t, held)
		g := receive(t, waiter, "lease")
		if g.err != nil {
			t.Fatalf("%q: %v", name, g.err)
		}
		if slow(start, g.at, 20*time.Millisecond) {
			t.Errorf("%q: handed over only after %v", name, g.at.Sub(start))
		}
		release(t, g.lease)
	}
	for _, name := range []string{"a}b{", "a{}b", "}"} {
		if _, err := first.Mutex(name, nil).TryLock(t.Context()); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

// Two processes on two libraries hand a lock over, in a cluster at each shard.
func TestCase30TwoWritersInEachSetting(t *testing.T) {
	eachSetting(t, twoWriters)
}

func twoWriters(t *testing.T, p place) {
	rounds := number(t, "ZAMOK_ITEST_SETTING_ROUNDS", 500)
	for _, name := range []string{"one", "two", "three"} {
		var longest atomic.Int64
		var writers sync.WaitGroup
		for turn := range 2 {
			m := p.client(t, turn, &zamok.Config{HandOver: -1}).Mutex(name, nil)
			writers.Go(func() {
				for range rounds {
					start := time.Now()
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					l, err := m.Lock(ctx)
					cancel()
					if err != nil {
						t.Error(err)
						return
					}
					longest.Store(max(longest.Load(), int64(counted(start, time.Now()))))
					if err := l.Release(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
		t.Logf("%s: longest wait %v", name, time.Duration(longest.Load()))
		if d := time.Duration(longest.Load()); d > factor*100*time.Millisecond {
			t.Errorf("%s: somebody waited for %v", name, d)
		}
	}
}

// Several names: those of one slot at once, others in order, and nothing is left.
func TestCase40SeveralNamesInACluster(t *testing.T) {
	t.Parallel()
	p := placeOf(drivertest.StartCluster(t, 3, 0))
	for turn, lib := range libraries {
		d := &trips{Driver: p.open(t, lib)}
		c := clientOn(t, d, nil)
		for _, x := range []struct {
			names []string
			sent  string
		}{
			{[]string{"{x}c", "{x}a", "{x}b"}, "multi_acquire"},
			{[]string{"c", "a", "b"}, "acquire acquire acquire"},
		} {
			d.take()
			h := lockAll(t, c.Multi(x.names, nil))
			if sent := d.take(); sent != x.sent {
				t.Errorf("%s: sent %q, want %q", lib.name, sent, x.sent)
			}
			if _, err := p.client(t, turn+1, nil).Multi(x.names[1:], nil).TryLock(t.Context()); err == nil {
				t.Errorf("%s: %q are taken twice", lib.name, x.names)
			}
			releaseAll(t, h)
		}
	}
	p.mustBeGone(t, mutexKind)
}
