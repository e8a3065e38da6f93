package itest

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
)

// In a partition the old primary and some clients are on the near side, and all others,
// who replace it, on the far side.

// partitionTTL is so long that no lease ends in a partition, also on a busy machine.
const partitionTTL = 2 * time.Minute

// needsReplicas runs a case without the setting that closes the gap, and with it.
func needsReplicas(t *testing.T, run func(t *testing.T, lib library, needs bool)) {
	drivertest.Failovers(t)
	for setting, needs := range map[string]bool{"0": false, "1": true} {
		t.Run("min-replicas-to-write="+setting, func(t *testing.T) {
			each(t, func(t *testing.T, lib library) { run(t, lib, needs) })
		})
	}
}

func setNeeds(s server, needs bool) {
	if needs {
		s.MustDo("CONFIG", "SET", "min-replicas-to-write", "1")
	}
}

// mustBeRefused checks that a primary without replicas, which needs one, grants nothing. In
// a cluster it may have given up meanwhile.
func mustBeRefused(t *testing.T, m taker) {
	t.Helper()
	var words *driver.ServerError
	within(t, patience, "the old primary answers", func() bool {
		l, err := m.TryLock(t.Context())
		if l != nil || !errors.Is(err, zamok.ErrUnavailable) {
			t.Fatalf("the old primary: %v, want NOREPLICAS", err)
		}
		return errors.As(err, &words)
	})
	if words.Code() != "NOREPLICAS" && words.Code() != "CLUSTERDOWN" {
		t.Errorf("the old primary: %v, want NOREPLICAS", words)
	}
}

// obtain asks until the lock is granted: clients learn in their own time who the primary
// is.
func obtain(t *testing.T, m taker) (l *zamok.Lease) {
	t.Helper()
	within(t, patience, "the lock is granted", func() bool {
		var err error
		l, err = m.TryLock(t.Context())
		return err == nil
	})
	return l
}

// awaitAlone waits until the primary has no replica any more.
func awaitAlone(t *testing.T, s server) {
	t.Helper()
	within(t, patience, "the old primary has no replica", func() bool {
		return strings.Contains(s.MustDo("INFO", "replication").(string), "connected_slaves:0")
	})
}

// With Sentinel both sides have a primary for as long as the partition lasts. It is made
// with the rights of users: the old primary refuses whoever is not on its side.
func TestSentinelPartition(t *testing.T) {
	needsReplicas(t, func(t *testing.T, lib library, needs bool) {
		d := startSentinel(t, 3, 1)
		old := d.primary()
		setNeeds(old, needs)
		old.MustDo("ACL", "SETUSER", "near", "on", ">near", "~*", "&*", "+@all")
		cfg := &zamok.Config{TTL: partitionTTL}
		near, far := lib.client(t, "redis://near:near@"+old.Addr(), cfg).Mutex("job", nil), d.client(t, lib, cfg).Mutex("job", nil)
		release(t, obtain(t, near))
		old.MustDo("ACL", "SETUSER", "default", "-@all", "+acl", "+client", "+info", "+role")
		old.MustDo("CLIENT", "KILL", "TYPE", "replica")
		d.AwaitFailover(old.Server)
		newer := obtain(t, far)
		awaitAlone(t, old)
		if needs {
			mustBeRefused(t, near)
		} else {
			second := obtain(t, near)
			if err := answer(t, second); err != nil {
				t.Errorf("the one on the old primary: %v", err)
			}
			if err := answer(t, newer); err != nil {
				t.Errorf("the one on the new primary: %v", err)
			}
		}
		old.MustDo("ACL", "SETUSER", "default", "+@all")
		within(t, patience, "the old primary follows", func() bool { return drivertest.Role(old.Server) == "slave" })
		if err := answer(t, newer); err != nil {
			t.Errorf("the holder on the far side: %v", err)
		}
		release(t, newer)
	})
}

// side is the ways to all nodes of a cluster.
type side map[string]*link

func startSide(t *testing.T, c *drivertest.Cluster) side {
	t.Helper()
	s := side{}
	for _, addr := range c.Addrs() {
		s[addr] = startLink(t, addr)
	}
	return s
}

func (s side) client(t *testing.T, lib library) *zamok.Client {
	t.Helper()
	to := target{Ways: map[string]string{}}
	for addr, way := range s {
		to.Nodes = append(to.Nodes, addr)
		to.Ways[addr] = way.listener.Addr().String()
	}
	return clientOn(t, lib.at(t, to), &zamok.Config{TTL: partitionTTL, GiveUp: 2 * time.Second})
}

// cut leaves the ways to those that reached says.
func (s side) cut(reached func(addr string) bool) {
	for addr, way := range s {
		if !reached(addr) {
			way.lay("")
			way.cut()
		}
	}
}

// nearHost is where the connections of the near side's node to others come from.
const nearHost = "127.0.0.2"

// startBuses puts a way before each node's port for the others, and tells them.
func startBuses(t *testing.T, c *drivertest.Cluster, near server) side {
	t.Helper()
	near.MustDo("CONFIG", "SET", "bind-source-addr", nearHost)
	buses := side{}
	var ports []string
	for _, s := range c.Nodes() {
		own := s.MustDo("CONFIG", "GET", "cluster-port").([]any)[1].(string)
		buses[s.Addr()] = startLink(t, net.JoinHostPort("127.0.0.1", own))
		_, port, _ := net.SplitHostPort(buses[s.Addr()].listener.Addr().String())
		s.MustDo("CONFIG", "SET", "cluster-announce-bus-port", port)
		ports = append(ports, "@"+port)
	}
	for _, s := range c.Nodes() {
		within(t, patience, "all know the ways", func() bool {
			text := s.MustDo("CLUSTER", "NODES").(string)
			for _, port := range ports {
				if !strings.Contains(text, port) {
					return false
				}
			}
			return true
		})
	}
	c.Settle()
	return buses
}

// In a cluster the primary on the smaller side grants until it finds that most are gone,
// and what it granted is believed after that too.
func TestClusterPartition(t *testing.T) {
	needsReplicas(t, func(t *testing.T, lib library, needs bool) {
		c := drivertest.StartCluster(t, 3, 1, "--cluster-node-timeout", "5000")
		slot := keys.Slot("lock:job")
		old, next := server{c.Primary(slot)}, server{c.Replica(slot)}
		setNeeds(old, needs)
		buses := startBuses(t, c, old)
		nearSide, farSide := startSide(t, c), startSide(t, c)
		near, far := nearSide.client(t, lib).Mutex("job", nil), farSide.client(t, lib).Mutex("job", nil)
		release(t, obtain(t, near))
		release(t, obtain(t, far))
		isNear := func(addr string) bool { return addr == old.Addr() }
		isFar := func(addr string) bool { return addr != old.Addr() }
		for _, bus := range buses {
			bus.bar(nearHost)
		}
		for _, s := range []side{buses, farSide} {
			s.cut(isFar)
		}
		for _, bus := range buses {
			bus.cut() // those of before
		}
		nearSide.cut(isNear)
		old.MustDo("ACL", "SETUSER", "default", "-psync", "-sync")
		old.MustDo("CLIENT", "KILL", "TYPE", "replica")
		awaitAlone(t, old)

		var older *zamok.Lease
		if needs {
			mustBeRefused(t, near)
		} else {
			older = obtain(t, near)
		}
		within(t, patience, "the replica takes over", func() bool { return drivertest.Role(next.Server) == "master" })
		newer := obtain(t, far)
		if older != nil && (older.Err() != nil || newer.Fence() <= older.Fence()) {
			t.Errorf("fence %d after %d; the first: %v", newer.Fence(), older.Fence(), older.Err())
		}
		within(t, patience, "the near side's primary gives up", func() bool {
			_, err := near.TryLock(t.Context())
			var words *driver.ServerError
			return errors.As(err, &words) && words.Code() == "CLUSTERDOWN"
		})

		old.MustDo("CONFIG", "SET", "bind-source-addr", "") // replicas are to come from the usual host
		for addr, bus := range buses {
			bus.bar("")
			if addr == old.Addr() {
				port, _ := old.MustDo("CONFIG", "GET", "cluster-port").([]any)[1].(string)
				bus.lay(net.JoinHostPort("127.0.0.1", port))
			}
		}
		for addr, way := range nearSide {
			way.lay(addr)
		}
		for addr, way := range farSide {
			way.lay(addr)
		}
		old.MustDo("ACL", "SETUSER", "default", "+psync", "+sync")
		c.Settle()
		if older != nil {
			var lost *zamok.LostError
			if err := answer(t, older); !errors.As(err, &lost) || lost.Reason != zamok.LostTaken {
				t.Errorf("the one on the near side: %v", err)
			}
		}
		if err := answer(t, newer); err != nil {
			t.Errorf("the one on the far side: %v", err)
		}
		release(t, newer)
	})
}
