package traffic

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"time"
)

// Plan is what a worker process is told.
type Plan struct {
	Proc   string // names its history; no two of a run may have the same
	Dir    string // of all histories of the run, and of what its workers share
	Seed   uint64
	Target Target

	Clients  int // of the two libraries in turn
	Routines int // of each client

	TTL        time.Duration // of all leases
	GiveUp     time.Duration // zamok.Config.GiveUp; 0: its default
	Quarantine time.Duration // 0: none; of a quorum its own
	Replicas   int           // zamok.Config.WaitReplicas

	Names   int           // of each kind
	Epoch   time.Duration // after which all names are new, which keeps searches short
	Hold    time.Duration // of most leases, on average
	Pause   time.Duration // of a routine between two leases, on average
	Long    int           // of a thousand leases how many are held through renewals
	Extend  int           // at how many of a thousand looks a lease is extended
	Bounded int           // how many of a thousand mutexes have MinHold or MaxHold; 0 on a quorum
	Crash   int           // and the process kills itself

	Guarded bool // holders of mutexes write to a register on the server
	Outside bool // and to one outside, which compares fences

	// Mix is how often each kind of work is done against the others.
	Mix map[Work]int
}

// Work is one kind of what a routine does in a turn.
type Work string

const (
	// Lock is a mutex, which routines of one client pass on among themselves.
	Lock Work = "lock"
	// Alone is a mutex that at most one routine of each client wants at a time, so that
	// whoever waits for it stands in the server's queue.
	Alone Work = "alone"
	// ReadWrite is a lock of readers and writers.
	ReadWrite Work = "readwrite"
	// Permits is a semaphore.
	Permits Work = "permits"
	// Several is mutexes that are taken together.
	Several Work = "several"
	// Once is a function that is run once.
	Once Work = "once"
	// HandOn is a mutex that is given away by its token, or got so: its holder may have
	// died.
	HandOn Work = "handon"
)

// Everything is the mix of all work there is.
func Everything() map[Work]int {
	return map[Work]int{Lock: 4, Alone: 4, ReadWrite: 4, Permits: 3, Several: 1, Once: 1, HandOn: 1}
}

// OfQuorum is the mix of what a quorum has. It has no guarded scripts either.
func OfQuorum() map[Work]int { return map[Work]int{Lock: 1, Alone: 1} }

// ReadPlan reads a plan as JSON.
func ReadPlan(r io.Reader) (*Plan, error) {
	p := new(Plan)
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, err
	}
	return p, p.check()
}

func (p *Plan) check() error {
	switch {
	case p.Proc == "" || p.Dir == "":
		return errors.New("a plan needs Proc and Dir")
	case p.Clients < 1 || p.Routines < 1 || p.Names < 1 || len(p.works()) == 0:
		return errors.New("a plan needs Clients, Routines, Names and a Mix")
	case p.TTL <= 0 || p.Epoch <= 0:
		return errors.New("a plan needs a TTL and an Epoch")
	}
	return nil
}

// works is each kind of work as often as the mix says.
func (p *Plan) works() []Work {
	var works []Work
	for _, work := range slices.Sorted(maps.Keys(p.Mix)) {
		works = append(works, slices.Repeat([]Work{work}, p.Mix[work])...)
	}
	return works
}
