package deploy

import (
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/skew"
)

// Mode is how clients find the servers.
type Mode string

// The modes.
const (
	Single   Mode = "single"   // one address
	Sentinel Mode = "sentinel" // the addresses of Sentinels
	Cluster  Mode = "cluster"  // those of nodes
	Quorum   Mode = "quorum"   // those of all members
)

// Kind is a way to run servers, and how clients are set up for them.
type Kind struct {
	Name         string
	Mode         Mode
	TTL          time.Duration // of leases
	Quarantine   time.Duration
	WaitReplicas int
	Majority     int // members of which nothing is lost by a fault; 0: it is no quorum

	start func(d *Deployment, workers int)
}

const (
	ttl = time.Second
	// takeOver is longer than most failovers take, so that who held before is still
	// believed to hold after it.
	takeOver = 10 * time.Second
	// longLived is several failovers.
	longLived = 30 * time.Second
	// Patient is how long Sentinels wait for a server that is not meant to be replaced: on
	// a busy machine it may not answer for a while.
	Patient = time.Minute
)

// Kinds are all of them.
var Kinds = []*Kind{
	{Name: "single", Mode: Single, TTL: ttl, start: single()},
	{Name: "quarantine", Mode: Single, TTL: ttl, Quarantine: ttl, start: single()},
	{Name: "aof", Mode: Single, TTL: ttl, start: single("--appendonly", "yes", "--appendfsync", "always")},
	{Name: "snapshot", Mode: Single, TTL: ttl, start: single("--save", "3600 1")},
	{Name: "clock", Mode: Single, TTL: ttl, start: clocked},
	{Name: "spaces", Mode: Single, TTL: ttl, start: spaced},
	{Name: "sentinel", Mode: Sentinel, TTL: takeOver, start: sentinel()},
	{Name: "sentinel-wait", Mode: Sentinel, TTL: longLived, WaitReplicas: 2, start: sentinel("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2")},
	{Name: "cluster", Mode: Cluster, TTL: 3 * ttl, start: cluster},
	{Name: "quorum3", Mode: Quorum, TTL: ttl, Quarantine: ttl, Majority: 2, start: members(3)},
	{Name: "quorum5", Mode: Quorum, TTL: ttl, Quarantine: ttl, Majority: 3, start: members(5)},
	{Name: "quorum-clock", Mode: Quorum, TTL: ttl, Quarantine: ttl, Majority: 2, start: clockedMember},
}

// KindOf finds the kind of that name.
func KindOf(name string) (*Kind, error) {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no kind of deployment is named %q", name)
	}
	return Kinds[i], nil
}

func single(args ...string) func(*Deployment, int) {
	return func(d *Deployment, _ int) {
		d.Servers = []*drivertest.Server{drivertest.StartServer(d.Host, args...)}
	}
}

func clocked(d *Deployment, _ int) {
	s, c := skew.StartRunning(d.Host)
	d.Servers, d.Clock = []*drivertest.Server{s}, c
}

func members(n int) func(*Deployment, int) {
	return func(d *Deployment, _ int) {
		for range n {
			d.Servers = append(d.Servers, drivertest.StartServer(d.Host))
		}
	}
}

// clockedMember has a clock on the last member. Servers that are started after that
// one would have its clock.
func clockedMember(d *Deployment, _ int) {
	for range 2 {
		d.Servers = append(d.Servers, drivertest.StartServer(d.Host))
	}
	s, c := skew.StartRunning(d.Host)
	d.Servers, d.Clock = append(d.Servers, s), c
}

func sentinel(args ...string) func(*Deployment, int) {
	return func(d *Deployment, _ int) {
		d.Sentinel = drivertest.StartSentinel(d.Host, 3, 2, args...)
		d.Sentinel.Patience(Patient)
		d.Servers = d.Sentinel.Servers()
	}
}

func cluster(d *Deployment, _ int) {
	d.Cluster = drivertest.StartCluster(d.Host, 3, 1)
	d.Servers = d.Cluster.Nodes()
}

func spaced(d *Deployment, workers int) {
	bind := []string{"127.0.0.1"}
	for range workers {
		s := newSpace(d.Host)
		d.Spaces = append(d.Spaces, s)
		bind = append(bind, s.host)
	}
	args := append([]string{"--protected-mode", "no", "--bind"}, bind...)
	d.Servers = []*drivertest.Server{drivertest.StartServer(d.Host, args...)}
}
