package itest

import (
	"context"
	"errors"
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

// traffic is workers, each a process of its own, who take locks one after the other.
type traffic struct {
	names []string
	seen  []history
	taken atomic.Int64
	lost  atomic.Int64 // or not confirmed to be given back
	slow  atomic.Int64 // the longest wait
}

// shards are slots, one at each of three shards.
var shards = []int{0, 5461, 10923}

// work takes the locks in turn until stop is closed.
func (tr *traffic) work(t *testing.T, c *zamok.Client, from int, stop <-chan struct{}) {
	for i := from; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		n := i % len(tr.names)
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		start := time.Now()
		l, err := c.Mutex(tr.names[n], nil).Lock(ctx)
		if waited := int64(time.Since(start)); waited > tr.slow.Load() {
			tr.slow.Store(waited)
		}
		if err != nil {
			cancel()
			t.Errorf("%s: %v", tr.names[n], err)
			return
		}
		end := tr.seen[n].held(fmt.Sprint("worker ", from, " at ", i), l)
		span(time.Duration(i%5) * time.Millisecond)
		end()
		// What was handed over has 2 s until its first renewal, which a failover can outlast.
		if err := l.Release(ctx); errors.Is(err, zamok.ErrLost) || errors.Is(err, zamok.ErrUnavailable) {
			tr.lost.Add(1)
			t.Logf("%s: %v", tr.names[n], err)
		} else if err != nil {
			t.Errorf("%s: Release: %v", tr.names[n], err)
		}
		cancel()
		tr.taken.Add(1)
	}
}

// Planned failovers and slots that go from one shard to another, under load: nobody
// waits for ever, no lock is stuck, two never hold one, and who holds keeps it, or is
// told. No node takes over twice, and none is taken for dead because a machine has no
// time for it, so nothing here has to come about within a time.
func TestCase29FailoverAndMigration(t *testing.T) {
	t.Parallel()
	failoverAndMigration(t, 5, "--cluster-node-timeout", "5000")
}

// The same ten times, so that nodes take over again, and may be taken for dead.
func TestCase29TenFailovers(t *testing.T) {
	drivertest.Failovers(t)
	t.Parallel()
	failoverAndMigration(t, 10)
}

func failoverAndMigration(t *testing.T, failovers int, args ...string) {
	cluster := drivertest.StartCluster(t, 3, 1, args...)
	p := placeOf(cluster)
	const names = 9
	tr := &traffic{seen: make([]history, names)}
	for i := range names {
		tr.names = append(tr.names, fmt.Sprint("job", i))
	}
	cfg := &zamok.Config{TTL: time.Minute, GiveUp: 2 * patience} // a failover has no bound on a busy machine
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for i := range 8 {
		c := p.client(t, i, cfg)
		workers.Go(func() { tr.work(t, c, i*names/8, stop) })
	}
	held := lock(t, p.client(t, 0, cfg).Mutex("held throughout", nil))
	for round := range 2 * failovers {
		before := tr.taken.Load()
		if round%2 == 0 {
			cluster.Failover(shards[round/2%len(shards)])
		} else {
			slot := keys.Slot("lock:" + tr.names[round%names])
			from := cluster.Primary(slot)
			for _, to := range shards {
				if next := cluster.Primary(to); next != from {
					cluster.MigrateSlot(slot, next, nil)
					break
				}
			}
		}
		within(t, patience, "the work goes on", func() bool { return tr.taken.Load() > before+4*names })
	}
	close(stop)
	workers.Wait()
	t.Logf("%d taken, %d lost, longest wait %v", tr.taken.Load(), tr.lost.Load(), time.Duration(tr.slow.Load()))
	if err := held.Err(); err != nil {
		t.Errorf("what was held throughout: %v", err)
	}
	release(t, held)
	for i, name := range tr.names {
		tr.seen[i].check(t)
		within(t, patience, name+" is free", func() bool {
			return p.waiting(t, name) == 0 && !p.at("lock:"+name).has(t, "lock:"+name)
		})
	}
}

// A lock is given back while its slot is half at another server, where no script that
// names its queue is run, and goes to who waits when the slot is there.
func TestClusterReleaseWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster := drivertest.StartCluster(t, 3, 0)
	p := placeOf(cluster)
	for turn, lib := range libraries {
		name := "job of " + lib.name
		slot := keys.Slot("lock:" + name)
		l := lock(t, p.client(t, turn, nil).Mutex(name, nil))
		waiter := goLock(t.Context(), p.client(t, turn+1, nil).Mutex(name, nil))
		within(t, patience, "it waits", func() bool { return p.waiting(t, name) == 1 })
		from, to := cluster.Primary(slot), server{cluster.Primary((slot + 16384/2) % 16384)}
		cluster.MigrateSlot(slot, to.Server, func() {
			release(t, l)
			if _, err := from.Do("GET", "lock:"+name); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
				t.Errorf("%s: the key is left: %v", lib.name, err)
			}
		})
		g := receive(t, waiter, "lock")
		if g.err != nil || g.lease.Fence() <= l.Fence() {
			t.Fatalf("%s: %+v after %d", lib.name, g, l.Fence())
		}
		if v := to.get(t, "lock:"+name); v != value(g.lease) {
			t.Errorf("%s: the key holds %q, the lease is %q", lib.name, v, value(g.lease))
		}
		release(t, g.lease)
	}
}
