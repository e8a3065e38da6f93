package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/lab/fault/deploy"
)

var ofTopology = []*Fault{
	{Name: "sentinel-switch", Lane: Server, Harms: mute, Do: sentinelSwitch},
	{Name: "sentinel-crash", Lane: Server, Harms: mute, Do: sentinelCrash},
	{Name: "sentinel-crash-behind", Lane: Server, Harms: mute, Least: 0.3, Most: 0.6, Do: sentinelCrashBehind},
	{Name: "sentinel-return", Lane: Server, Harms: mute, Do: sentinelReturn},
	{Name: "cluster-switch", Lane: Server, Harms: mute, Do: clusterSwitch},
	{Name: "cluster-crash", Lane: Server, Harms: mute, Do: clusterCrash},
	{Name: "cluster-crash-behind", Lane: Server, Harms: mute, Least: 0.3, Most: 0.6, Do: clusterCrashBehind},
	{Name: "cluster-hang", Lane: Server, Harms: mute, Least: 0.05, Most: 0.3, Do: clusterHang},
	{Name: "cluster-move", Lane: Server, Harms: mute, Do: clusterMove},
}

// nothing is the Undo of what is over when it is done.
var nothing = always(func() {})

func sentinelSwitch(s *Scene, _ *rand.Rand, _ time.Duration) Done {
	target := s.name([]*drivertest.Server{s.Sentinel.Primary()})
	s.Sentinel.Failover()
	s.Sentinel.AwaitReplicas(len(s.Servers) - 1)
	return Done{Target: target, Undo: nothing}
}

// sentinelCrash kills the primary and has a replica take over.
func sentinelCrash(s *Scene, _ *rand.Rand, _ time.Duration) Done {
	p := s.Sentinel.Primary()
	p.Kill()
	next := s.replaced(p)
	return Done{Target: s.name([]*drivertest.Server{p}), Undo: always(func() { s.rejoin(p, next) })}
}

// sentinelCrashBehind is the same, and the one that takes over lacks what was written
// last, though another replica has it.
func sentinelCrashBehind(s *Scene, r *rand.Rand, lasts time.Duration) Done {
	p := s.Sentinel.Primary()
	behind := p
	for behind == p {
		behind = s.Servers[r.IntN(len(s.Servers))]
	}
	behind.MustDo("CONFIG", "SET", "replica-priority", "1") // Sentinel takes the least
	behind.FallBehind()
	<-time.After(lasts)
	p.Kill()
	next := s.replaced(p)
	return Done{Target: s.name([]*drivertest.Server{p}), Undo: func() bool {
		behind.CatchUp()
		behind.MustDo("CONFIG", "SET", "replica-priority", "100")
		s.rejoin(p, next)
		return next == behind
	}}
}

// replaced has Sentinels replace a server that does not answer, and returns the one that
// took its place.
func (s *Scene) replaced(p *drivertest.Server) *drivertest.Server {
	s.Sentinel.Patience(time.Second)
	next := s.Sentinel.AwaitFailover(p)
	s.Sentinel.Patience(deploy.Patient)
	return next
}

// rejoin has a server that was killed come back as a replica. Sentinel would see to that
// only after it has been wrong for 8 s.
func (s *Scene) rejoin(p, next *drivertest.Server) {
	p.Restart()
	p.Follow(next)
	s.Sentinel.AwaitReplicas(len(s.Servers) - 1)
}

// sentinelReturn has a primary hang until it is replaced, and come back.
func sentinelReturn(s *Scene, _ *rand.Rand, _ time.Duration) Done {
	p := s.Sentinel.Primary()
	p.Pause()
	s.replaced(p)
	return Done{Target: s.name([]*drivertest.Server{p}), Undo: always(func() {
		p.Resume()
		s.Sentinel.AwaitReplicas(len(s.Servers) - 1)
	})}
}

// anySlot is one that has a key, if one is found.
func (s *Scene) anySlot(r *rand.Rand) int {
	slot := r.IntN(slots)
	if key, _ := s.Cluster.Primary(slot).Do("RANDOMKEY"); key != nil {
		return keys.Slot(key.(string))
	}
	return slot
}

func clusterSwitch(s *Scene, r *rand.Rand, _ time.Duration) Done {
	slot := s.anySlot(r)
	target := s.name([]*drivertest.Server{s.Cluster.Primary(slot)})
	s.Cluster.Failover(slot)
	return Done{Target: target, Undo: nothing}
}

// clusterCrash kills a primary and waits until its replica has taken over.
func clusterCrash(s *Scene, r *rand.Rand, _ time.Duration) Done {
	slot := s.anySlot(r)
	p, next := s.Cluster.Primary(slot), s.Cluster.Replica(slot)
	p.Kill()
	for limit := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if drivertest.Role(next) == "master" {
			break
		}
		if time.Now().After(limit) {
			s.Host.Fatalf("nobody took over from %s", p.Addr())
		}
	}
	return Done{Target: s.name([]*drivertest.Server{p}), Undo: always(func() {
		p.Restart()
		s.Cluster.Settle()
	})}
}

// clusterCrashBehind is the same with a replica that lacks what was written last. It is
// told to take over, or leases would end before it does.
func clusterCrashBehind(s *Scene, r *rand.Rand, lasts time.Duration) Done {
	p, next := s.Cluster.CrashBehind(s.anySlot(r), lasts)
	return Done{Target: s.name([]*drivertest.Server{p}), Undo: always(func() {
		next.CatchUp()
		p.Restart()
		s.Cluster.Settle()
	})}
}

// clusterHang pauses a primary for less than what makes the others replace it.
func clusterHang(s *Scene, r *rand.Rand, _ time.Duration) Done {
	p := s.Cluster.Primary(s.anySlot(r))
	p.Pause()
	return Done{Target: s.name([]*drivertest.Server{p}), Undo: always(p.Resume)}
}

// clusterMove gives the slot of a lock to another shard.
func clusterMove(s *Scene, r *rand.Rand, _ time.Duration) Done {
	slot := s.anySlot(r)
	from := s.Cluster.Primary(slot)
	to := from
	for to == from {
		to = s.Cluster.Primary(r.IntN(slots))
	}
	s.Cluster.MigrateSlot(slot, to, func() { <-time.After(50 * time.Millisecond) })
	return Done{Target: fmt.Sprintf("slot %d", slot), Undo: nothing}
}

const slots = 16384
