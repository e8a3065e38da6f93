package itest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// confirmed is for a deployment with one replica: all that can be promoted have what
// is granted.
func confirmed() *zamok.Config { return &zamok.Config{TTL: 9 * time.Second, WaitReplicas: 1} }

// Operators move the primary again and again under load. An old primary goes on
// granting until its clients have learned of the new one; with WaitReplicas nobody is
// told of such a grant.
func TestSentinelSwitchOversUnderLoad(t *testing.T) {
	drivertest.Failovers(t)
	each(t, func(t *testing.T, lib library) {
		d := startSentinel(t, 3, 1)
		names := []string{"one", "two"}
		histories := map[string]*history{}
		served := map[string]*atomic.Int64{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var workers sync.WaitGroup
		for _, name := range names {
			h, n := &history{}, &atomic.Int64{}
			histories[name], served[name] = h, n
			for w := range 3 {
				m := d.client(t, lib, confirmed()).Mutex(name, nil)
				workers.Go(func() {
					for ctx.Err() == nil {
						l, err := m.Lock(ctx)
						if err != nil {
							if ctx.Err() == nil && !errors.Is(err, zamok.ErrUnavailable) {
								t.Errorf("Lock: %v", err)
							}
							continue
						}
						end := h.held(fmt.Sprintf("%s %d", name, w), l)
						select {
						case <-time.After(2 * time.Millisecond):
						case <-ctx.Done():
						}
						end()
						if err := l.Release(context.Background()); err == nil {
							n.Add(1)
						} else if !errors.Is(err, zamok.ErrLost) && !errors.Is(err, zamok.ErrUnavailable) {
							t.Errorf("Release: %v", err)
						}
					}
				})
			}
		}
		for range 5 {
			d.Failover()
			d.AwaitReplicas(1)
			for _, name := range names {
				before := served[name].Load()
				within(t, patience, "waiters go on", func() bool { return served[name].Load() > before+20 })
			}
		}
		stop()
		workers.Wait()
		for _, name := range names {
			holds := histories[name].check(t)
			t.Logf("%s: %d holds", name, len(holds))
			within(t, patience, "nothing is left", func() bool { return !d.primary().has(t, "lock:"+name) && d.primary().waiting(t, name) == 0 })
		}
	})
}

// The primary dies, and its replica has all: the holder keeps its lease, and who waits
// has the lock when it is released.
func TestSentinelCrashInStep(t *testing.T) {
	drivertest.Failovers(t)
	each(t, func(t *testing.T, lib library) {
		d := startSentinel(t, 3, 1)
		waits := make(chan struct{}, 1000) // until it is told that it waits it may give up
		a, b := d.client(t, lib, &zamok.Config{TTL: 30 * time.Second, WaitReplicas: 1}), d.client(t, lib, &zamok.Config{
			TTL: 30 * time.Second, Trace: &zamok.Trace{Waiting: func(zamok.WaitingInfo) { waits <- struct{}{} }},
		})
		old := d.primary()
		l := lock(t, a.Mutex("job", nil))
		result := goLock(t.Context(), b.Mutex("job", nil))
		receive(t, waits, "reply to the waiter")
		within(t, patience, "the replica knows of the waiter", func() bool { return server{d.Servers()[1]}.waiting(t, "job") == 1 })
		old.Kill()
		d.AwaitFailover(old.Server)
		var err error
		within(t, patience, "the holder has an answer", func() bool {
			err = l.Check(t.Context())
			return !errors.Is(err, zamok.ErrUnavailable)
		})
		if err != nil {
			t.Errorf("the holder: %v", err)
		}
		release(t, l)
		g := receive(t, result, "lock")
		if g.err != nil || g.lease.Fence() <= l.Fence() {
			t.Fatalf("the waiter: %v", g.err)
		}
		release(t, g.lease)
	})
}

// F5: the primary dies with writes that no replica has. Without WaitReplicas two hold the
// lock, which shows that the next test can fail; their fences order them, and the older
// is told at its next renewal.
func TestSentinelCrashLosesAGrant(t *testing.T) {
	drivertest.Failovers(t)
	each(t, func(t *testing.T, lib library) {
		d := startSentinel(t, 3, 1)
		cfg := &zamok.Config{TTL: time.Minute} // the first renewal, after a third of it, comes after the failover
		a, b := d.client(t, lib, cfg), d.client(t, lib, cfg)
		old := d.primary()
		d.Partition()
		older := tryLock(t, a.Mutex("job", nil))
		old.Kill()
		d.AwaitFailover(old.Server)
		newer := lock(t, b.Mutex("job", nil))
		start := time.Now()
		if older.Err() != nil {
			t.Fatalf("the first has ended before the second began: %v", older.Err())
		}
		if newer.Fence() <= older.Fence() {
			t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
		}
		lost := lossOf(t, older)
		if took := time.Since(start); took > cfg.TTL*9/10 || lost.Reason != zamok.LostTaken {
			t.Errorf("the older is told after %v: %v", took, lost)
		}
		release(t, newer)
	})
}

// The same with WaitReplicas: nobody is told of a grant that the crash would take back.
func TestSentinelCrashWithWaitReplicas(t *testing.T) {
	drivertest.Failovers(t)
	each(t, func(t *testing.T, lib library) {
		for range number(t, "ZAMOK_ROUNDS", 5) { // with each library
			crashWithWaitReplicas(t, lib)
		}
	})
}

func crashWithWaitReplicas(t *testing.T, lib library) {
	d := startSentinel(t, 3, 1)
	// No lease ends in a round, however long the failover takes.
	cfg := &zamok.Config{TTL: 2 * time.Minute, WaitReplicas: 1, WaitTimeout: 200 * time.Millisecond}
	a, b := d.client(t, lib, cfg), d.client(t, lib, cfg)
	old := d.primary()
	kept := lock(t, a.Mutex("kept", nil))
	d.Partition()
	for _, take := range []func() (*zamok.Lease, error){
		func() (*zamok.Lease, error) { return a.Mutex("job", nil).Lock(t.Context()) },
		func() (*zamok.Lease, error) { return a.Mutex("job", nil).TryLock(t.Context()) },
	} {
		_, err := take()
		var few *zamok.ReplicasError
		if !errors.As(err, &few) || few.Want != 1 || few.Got != 0 || !errors.Is(err, zamok.ErrUnavailable) {
			t.Errorf("without a replica: %v", err)
		}
		within(t, patience, "it is given back", func() bool { return !old.has(t, "lock:job") })
	}
	old.Kill()
	next := d.AwaitFailover(old.Server)
	if _, err := b.Mutex("kept", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
		t.Errorf("a rival on the new primary: %v", err)
	}
	within(t, patience, "the holder has an answer", func() bool {
		err := kept.Check(t.Context())
		if err != nil && !errors.Is(err, zamok.ErrUnavailable) {
			t.Fatalf("the holder: %v", err)
		}
		return err == nil
	})
	// The new primary has no replica until the old one comes back as one. Sentinel makes
	// it one when it has not seen a pause of it for some seconds, which on a busy machine
	// takes as long as it takes.
	old.Restart()
	host, port, _ := net.SplitHostPort(next.Addr())
	old.MustDo("REPLICAOF", host, port)
	within(t, patience, "the old primary follows", func() bool {
		n, err := d.primary().Do("WAIT", "1", "10") // a connection from before may be cut meanwhile
		return err == nil && n == int64(1)
	})
	within(t, patience, "the replica is in step", func() bool {
		l, err := b.Mutex("job", nil).Lock(t.Context())
		var few *zamok.ReplicasError
		if err != nil && !errors.As(err, &few) {
			t.Fatal(err)
		}
		if err == nil {
			release(t, l)
		}
		return err == nil
	})
	release(t, kept)
}

// F5b: the primary stands still, is replaced, and returns. Until Sentinel has made it a
// replica it grants locks to whoever has its address, unless it needs replicas to write.
func TestSentinelPausedPrimaryReturns(t *testing.T) {
	drivertest.Failovers(t)
	for _, needs := range []string{"0", "1"} {
		t.Run("min-replicas-to-write="+needs, func(t *testing.T) {
			each(t, func(t *testing.T, lib library) { pausedPrimaryReturns(t, lib, needs) })
		})
	}
}

func pausedPrimaryReturns(t *testing.T, lib library, needs string) {
	d := startSentinel(t, 3, 1, "--min-replicas-max-lag", "2")
	d.primary().MustDo("CONFIG", "SET", "min-replicas-to-write", needs)
	cfg := &zamok.Config{TTL: 15 * time.Second, GiveUp: time.Second}
	a := d.client(t, lib, cfg)
	old := d.primary()
	stale := lib.client(t, old.URL(), cfg)
	release(t, lock(t, stale.Mutex("other", nil)))
	old.Pause()
	d.AwaitFailover(old.Server)
	newer := lock(t, a.Mutex("job", nil))
	old.Resume()
	within(t, patience, "the old primary sees that its replica is gone", func() bool {
		info, _ := old.MustDo("INFO", "replication").(string)
		return strings.Contains(info, "connected_slaves:0")
	})
	second, err := stale.Mutex("job", nil).TryLock(t.Context())
	switch {
	case needs == "1":
		var words *driver.ServerError
		if second != nil || !errors.Is(err, zamok.ErrUnavailable) || !errors.As(err, &words) || words.Code() != "NOREPLICAS" && words.Code() != "READONLY" {
			t.Errorf("the old primary, which needs a replica: %v", err)
		}
	case err == nil: // as long as Sentinel has not come to it
		t.Logf("two hold the lock: fences %d and %d", newer.Fence(), second.Fence())
		lost := lossOf(t, second)
		if newer.Err() != nil {
			t.Errorf("the newer primary's holder lost it: %v", newer.Err())
		}
		t.Logf("the one on the old primary is told: %v", lost)
	default:
		t.Logf("Sentinel was faster: %v", err)
	}
	within(t, patience, "the old primary follows", func() bool { return drivertest.Role(old.Server) == "slave" })
	if err := newer.Check(t.Context()); err != nil {
		t.Errorf("the holder: %v", err)
	}
	release(t, newer)
}
