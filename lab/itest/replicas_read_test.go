package itest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

// A client that reads from replicas asks the primaries about locks all the same. One
// that sends everything to replicas is refused or sent on by them.
func TestClusterReplicasDecideNothing(t *testing.T) {
	t.Parallel()
	cluster := drivertest.StartCluster(t, 3, 1, "--cluster-node-timeout", "60000")
	p := placeOf(cluster)
	goRedis := func(opt redis.ClusterOptions) driver.Driver {
		opt.Addrs = cluster.Addrs()
		c := redis.NewClusterClient(&opt)
		t.Cleanup(func() { _ = c.Close() })
		return zamokgoredis.New(c)
	}
	ruei := func(toReplicas func(rueidis.Completed) bool) driver.Driver {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs(), SendToReplicas: toReplicas})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return zamokrueidis.New(c)
	}
	ran := func() (n int64) {
		for _, s := range cluster.Nodes() {
			if drivertest.Role(s) == "slave" {
				did := s.Commands()
				n += did["evalsha"] + did["eval"]
			}
		}
		return n
	}
	holder := p.client(t, 0, nil)
	for i, d := range []driver.Driver{
		goRedis(redis.ClusterOptions{ReadOnly: true}),
		goRedis(redis.ClusterOptions{RouteByLatency: true}),
		goRedis(redis.ClusterOptions{RouteRandomly: true}),
		ruei(func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }),
	} {
		c := clientOn(t, d, nil)
		for k := range 6 {
			name := fmt.Sprint("job", i, k)
			held := tryLock(t, holder.Mutex(name, nil))
			if _, err := c.Mutex(name, nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
				t.Errorf("client %d: %v", i, err)
			}
			waiter := goLock(t.Context(), c.Mutex(name, nil))
			within(t, patience, "it waits", func() bool { return p.waiting(t, name) == 1 })
			release(t, held)
			g := receive(t, waiter, "lock")
			if g.err != nil {
				t.Fatalf("client %d: %v", i, g.err)
			}
			if err := g.lease.Check(t.Context()); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			release(t, g.lease)
		}
	}
	if n := ran(); n > 0 {
		t.Errorf("%d scripts ran at replicas", n)
	}

	// These may run the script, which then ends at its first write, or say who has the slot.
	c := clientOn(t, ruei(func(rueidis.Completed) bool { return true }), &zamok.Config{GiveUp: time.Second})
	held := tryLock(t, holder.Mutex("held", nil))
	if _, err := c.Mutex("held", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) && !errors.Is(err, zamok.ErrUnavailable) {
		t.Errorf("of one that is held: %v", err)
	}
	l, err := c.Mutex("free", nil).TryLock(t.Context())
	if err == nil && p.at("lock:free").get(t, "lock:free") != value(l) || err != nil && !errors.Is(err, zamok.ErrUnavailable) {
		t.Errorf("of one that is free: %v", err)
	}
	release(t, held)
}
