package deploy

import (
	"fmt"
	"slices"

	"github.com/zamok-go/zamok/lab/fault/validate"
)

// Promise is what docs/guarantees.md says of a fault on some kinds of deployments.
// What is in no Promise is not tried.
type Promise struct {
	// Row is the beginning of the table's row: deployment and fault.
	Row    string
	Kinds  []string // nil: all that have what the faults need
	Faults []string
	// Broken is what the row does not promise.
	Broken []validate.Property
}

var (
	standalone = []string{"single", "quarantine", "aof", "snapshot"}
	quorums    = []string{"quorum3", "quorum5"}
	replicated = []string{"sentinel", "sentinel-wait", "cluster"}
	clocks     = []string{"clock", "quorum-clock"}
	proxied    = slices.Concat(standalone, quorums, replicated, clocks)
	// alone are those of which nobody takes the place of a server that hangs.
	alone = slices.Concat(standalone, quorums, clocks, []string{"spaces"})
	// early is broken when a lease can end on the server before its holder knows.
	early = []validate.Property{validate.Exclusion, validate.Object, validate.Once}
	// told is broken when a holder can be told that its lease is lost with the data,
	// before its end and before anybody else has one; or when it released it, after a
	// library repeated that and fences are no times.
	told = []validate.Property{validate.Object}
	// rolled is broken when data can be lost, and nothing is granted until those who
	// lost a lease with them have stopped.
	rolled = slices.Concat(told, []validate.Property{validate.Guarded, validate.Once})
	// losing is broken when data can be lost.
	losing = slices.Concat(early, rolled)
	// split is broken when two servers grant at a time.
	split = slices.Concat(losing, []validate.Property{validate.Fences, validate.Outside, validate.Order, validate.Told})
)

// Promises are the table.
var Promises = []Promise{
	{Row: "any | holder crashes", Faults: []string{"kill-worker"}},
	{Row: "any | holder paused for longer than its lease", Faults: []string{"pause-worker", "pause-worker-long"}},
	{Row: "any | holder cut off from the server", Kinds: proxied, Faults: []string{"blackhole", "refuse"}},
	{Row: "any | holder cut off from the server", Kinds: []string{"spaces"}, Faults: []string{"partition"}},
	{Row: "any | reply lost, call cancelled, connection reset", Kinds: proxied, Faults: []string{"cut-before", "cut-after", "cut-inside", "hold-request", "hold-reply", "reset", "delay", "jitter", "narrow"}},
	{Row: "any | reply lost, call cancelled, connection reset", Faults: []string{"kill-clients"}},
	{Row: "any | message to a waiter lost or late", Kinds: proxied, Faults: []string{"drop-message", "hold-message"}},
	{Row: "any | message to a waiter lost or late", Faults: []string{"kill-listeners"}},
	{Row: "any | server hangs, or forgets its scripts", Faults: []string{"flush-scripts", "pause-clients"}},
	{Row: "any | server hangs, or forgets its scripts", Kinds: alone, Faults: []string{"pause-server", "pause-server-long"}},
	{Row: "any | server's clock set forward", Kinds: []string{"clock"}, Faults: []string{"clock-forward"}, Broken: early},
	{Row: "any | server's clock set back", Kinds: []string{"clock"}, Faults: []string{"clock-back"}, Broken: told},
	{Row: "any | FLUSHALL", Kinds: []string{"single", "aof", "snapshot"}, Faults: []string{"flush-all"}, Broken: losing},
	{Row: "any but a cluster, with quarantine | FLUSHALL", Kinds: []string{"quarantine"}, Faults: []string{"flush-all"}, Broken: rolled},
	{Row: "any | lock's key evicted", Kinds: []string{"single"}, Faults: []string{"evict"}, Broken: losing},
	{Row: "any | memory full, `noeviction`", Kinds: standalone, Faults: []string{"memory-full"}},
	{Row: "single server, no persistence | restart", Kinds: []string{"single"}, Faults: []string{"kill-server", "stop-server"}, Broken: losing},
	{Row: "single server, no persistence, with quarantine | restart", Kinds: []string{"quarantine"}, Faults: []string{"kill-server", "stop-server", "old-data"}, Broken: rolled},
	{Row: "single server, snapshots | restart from the last one", Kinds: []string{"snapshot"}, Faults: []string{"kill-server", "old-data"}, Broken: losing},
	{Row: "single server | down, then back with its data", Kinds: []string{"aof", "snapshot"}, Faults: []string{"stop-server"}},
	{Row: "single server, AOF `always` | crash, power loss", Kinds: []string{"aof"}, Faults: []string{"kill-server"}},

	{Row: "Sentinel | the primary is moved, under load", Kinds: []string{"sentinel"}, Faults: []string{"sentinel-switch"}, Broken: losing},
	{Row: "Sentinel | crash, the replica lacked the last writes", Kinds: []string{"sentinel"}, Faults: []string{"sentinel-crash", "sentinel-crash-behind"}, Broken: losing},
	{Row: "Sentinel | partition, or a paused primary that returns", Kinds: []string{"sentinel"}, Faults: []string{"sentinel-return"}, Broken: split},
	{Row: "Sentinel, `WaitReplicas` = all replicas that can be promoted | the same", Kinds: []string{"sentinel-wait"}, Faults: []string{"sentinel-switch", "sentinel-crash", "sentinel-crash-behind"}, Broken: rolled},

	{Row: "Cluster | planned failover; a slot goes to another shard", Kinds: []string{"cluster"}, Faults: []string{"cluster-switch", "cluster-move"}},
	{Row: "Cluster | one shard hangs", Kinds: []string{"cluster"}, Faults: []string{"cluster-hang"}},
	{Row: "Cluster | failover, replica lacked the last writes", Kinds: []string{"cluster"}, Faults: []string{"cluster-crash", "cluster-crash-behind"}, Broken: losing},

	{Row: "Quorum | a member restarts without its data, or from old data, or is wiped", Kinds: quorums, Faults: []string{"kill-server", "stop-server", "old-data", "flush-all", "few-votes"}, Broken: told},
	{Row: "Quorum | the clock of a member is set forward", Kinds: []string{"quorum-clock"}, Faults: []string{"clock-forward"}, Broken: early},
}

// Find is the promise of one fault on a kind; there is none where it is not tried.
func (k *Kind) Find(fault string) (Promise, bool) {
	i := slices.IndexFunc(Promises, func(p Promise) bool {
		return (p.Kinds == nil || slices.Contains(p.Kinds, k.Name)) && slices.Contains(p.Faults, fault)
	})
	if i < 0 {
		return Promise{}, false
	}
	return Promises[i], true
}

// Broken is what is not promised when these faults come together.
func (k *Kind) Broken(faults []string) (broken []validate.Property, err error) {
	if k.Mode == Quorum {
		broken = append(broken, validate.Order) // as NewQuorum says
	}
	for _, f := range faults {
		p, ok := k.Find(f)
		if !ok {
			return nil, fmt.Errorf("no promise is made of fault %s on deployment %s", f, k.Name)
		}
		broken = append(broken, p.Broken...)
	}
	slices.Sort(broken)
	return slices.Compact(broken), nil
}

// Kept are the faults under which the kind promises that one holder has a lock.
func (k *Kind) Kept() (faults []string) {
	for _, p := range Promises {
		for _, f := range p.Faults {
			if found, ok := k.Find(f); ok && !slices.Contains(found.Broken, validate.Exclusion) && !slices.Contains(faults, f) {
				faults = append(faults, f)
			}
		}
	}
	return faults
}
