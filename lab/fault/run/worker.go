package run

import (
	"encoding/json"
	"hash/fnv"
	"os"
	"os/exec"
	"time"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/traffic"
)

// workerArg is what this program is called with when it is a worker.
const workerArg = "worker"

// worker returns what starts a worker of the deployment: this program, which reads its
// plan.
func (c *campaign) worker(d *deploy.Deployment) func(worker int, proc string) (*exec.Cmd, []byte) {
	return func(worker int, proc string) (*exec.Cmd, []byte) {
		args := []string{os.Args[0], workerArg}
		if d.Spaces != nil {
			args = d.Spaces[worker].Command(args...)
		}
		text, err := json.Marshal(c.traffic(d, worker, proc))
		if err != nil {
			panic(err) // it holds numbers and texts
		}
		return exec.Command(args[0], args[1:]...), text
	}
}

func (c *campaign) traffic(d *deploy.Deployment, worker int, proc string) *traffic.Plan {
	p := &traffic.Plan{
		Proc: proc, Dir: c.dir, Seed: c.plan.Seed ^ hash(proc),
		Clients: 2, Routines: 4,
		TTL: c.ttl(&c.plan), Quarantine: d.Quarantine, Replicas: d.WaitReplicas,
		Names: 3, Epoch: 5 * time.Second,
		Hold: 5 * time.Millisecond, Pause: 10 * time.Millisecond, Long: 20, Extend: 50, Bounded: 100, Crash: 1,
		Mix: traffic.Everything(), Guarded: d.Mode != deploy.Quorum, Outside: true,
	}
	if c.plan.Expect != nil { // who holds for long is who can be overtaken, while the name is wanted
		p.Names, p.Epoch, p.Hold, p.Long = 10, 5*p.TTL, p.TTL/5, 200
	}
	if d.WaitReplicas > 0 { // the same, and most names were free before: what is granted next is lost with the release else
		p.Epoch, p.Hold, p.Long = p.TTL/2, p.TTL/5, 200
	}
	if c.plan.TTL != 0 { // none of those who could leave a lease behind
		p.Long, p.Crash = 0, 0
		delete(p.Mix, traffic.HandOn)
	}
	p.Target = target(d, d.Addrs(worker))
	p.Target.Ways = d.Detours(worker)
	if d.Mode == deploy.Quorum {
		p.Mix, p.Bounded = traffic.OfQuorum(), 0
	}
	return p
}

// target is the servers of a deployment, which are found at addrs.
func target(d *deploy.Deployment, addrs []string) (to traffic.Target) {
	switch d.Mode {
	case deploy.Single:
		to.Addr = addrs[0]
	case deploy.Sentinel:
		to.Sentinels = addrs
	case deploy.Cluster:
		to.Nodes = addrs
	case deploy.Quorum:
		to.Members = addrs
	}
	return to
}

// hash makes another seed of another name.
func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}
