package itest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// sentinel is a primary with replicas and Sentinels that watch them.
type sentinel struct{ *drivertest.Sentinel }

func startSentinel(t *testing.T, sentinels, replicas int, args ...string) sentinel {
	t.Helper()
	return sentinel{drivertest.StartSentinel(t, sentinels, replicas, args...)}
}

func (s sentinel) primary() server { return server{s.Primary()} }

// open makes a driver on a client that asks the Sentinels who is the primary.
func (s sentinel) open(t testing.TB, lib library) driver.Driver {
	t.Helper()
	return lib.at(t, target{Sentinels: s.Addrs()})
}

func (s sentinel) client(t *testing.T, lib library, cfg *zamok.Config) *zamok.Client {
	t.Helper()
	return clientOn(t, s.open(t, lib), cfg)
}

// An operator moves the primary while a lock is held and another waits for it.
// The holder keeps its lease or is told; the waiter gets the lock after it; the
// fence grows.
func TestSentinelPlannedFailover(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		d := startSentinel(t, 1, 1)
		servers := [2]server{{d.Servers()[0]}, {d.Servers()[1]}}
		cfg := &zamok.Config{TTL: 9 * time.Second}
		a, b := d.client(t, lib, cfg), d.client(t, lib, cfg)
		var h history
		l := lock(t, a.Mutex("job", nil))
		end := h.held("holder", l)
		result := goLock(t.Context(), b.Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return servers[0].waiting(t, "job") == 1 })
		within(t, patience, "the replica knows", func() bool { return servers[1].waiting(t, "job") == 1 })

		d.Failover()
		var err error
		within(t, patience, "the holder has an answer", func() bool {
			err = l.Check(t.Context())
			return !errors.Is(err, zamok.ErrUnavailable)
		})
		if err != nil && !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Check: %v", err)
		}
		t.Logf("the holder: %v", err)
		end()
		releaseErr := l.Release(context.Background())
		if (err == nil) != (releaseErr == nil) {
			t.Errorf("Check says %v, Release %v", err, releaseErr)
		}
		start := time.Now()
		g := receive(t, result, "lock")
		if g.err != nil {
			t.Fatalf("the waiter: %v", g.err)
		}
		t.Logf("the waiter has it %v after the release", g.at.Sub(start))
		if v := d.primary().get(t, "lock:job"); v != value(g.lease) {
			t.Errorf("the key holds %q, the lease is %q", v, value(g.lease))
		}
		h.held("waiter", g.lease)()
		h.check(t)
		release(t, g.lease)

		// And as before on the new primary: woken by a push, not by a look.
		l = lock(t, a.Mutex("job", nil))
		result = goLock(t.Context(), b.Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return servers[1].waiting(t, "job") == 1 })
		start = time.Now()
		release(t, l)
		if g = receive(t, result, "lock"); g.err != nil || slow(start, g.at, 100*time.Millisecond) {
			t.Errorf("handed over after %v: %v", g.at.Sub(start), g.err)
		}
	})
}
