package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// Workers are the processes that use the servers.
type Workers interface {
	// Len is how many there are.
	Len() int
	// Proc is the name of the process in the history: a worker that died is
	// started again as another.
	Proc(worker int) string
	// Signal sends a signal to the process of that name, and reports whether it was
	// there to get it.
	Signal(proc string, s syscall.Signal) bool
}

// Scene is what a fault is done to.
type Scene struct {
	*deploy.Deployment
	Workers Workers
	ahead   time.Duration
}

// Lane is what faults of one kind are done to. Those of one lane come one after the
// other.
type Lane int

// The lanes.
const (
	Worker Lane = iota
	Network
	Server
)

// lanes are all that go on at a time. Ways are many, so that two of them are harmed.
var lanes = []Lane{Worker, Network, Network, Server}

// Fault is a kind of harm.
type Fault struct {
	Name  string
	Lane  Lane
	Harms history.Harm
	// Least and Most are how long it lasts, in parts of a TTL or, but for workers, of a
	// second if that is less.
	Least, Most float64
	// Do does it, and says to whom. lasts is for those that need to know
	// beforehand.
	Do func(s *Scene, r *rand.Rand, lasts time.Duration) Done
}

// Done is a fault that goes on until Undo.
type Done struct {
	Target       string
	Kills, Stops string // processes, see history.Fault
	Detail       string
	// Undo ends it; nil: nothing is to be undone. It reports false when nothing was
	// harmed after all.
	Undo func() (happened bool)
	// After is for how long the harm is felt when it is over.
	After time.Duration
}

// always makes an Undo of what has certainly happened.
func always(undo func()) func() bool {
	return func() bool { undo(); return true }
}

// All are the faults of all lanes.
var All = slices.Concat(ofWorkers, ofNetwork, ofServers, ofTopology)

// Named finds faults by their names.
func Named(names ...string) ([]*Fault, error) {
	var found []*Fault
	for _, name := range names {
		i := slices.IndexFunc(All, func(f *Fault) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no fault is named %q", name)
		}
		found = append(found, All[i])
	}
	return found, nil
}
