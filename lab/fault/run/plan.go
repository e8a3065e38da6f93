package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/faults"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// Plan is one campaign.
type Plan struct {
	Deployment string
	// Faults are named; "kept" stands for all under which exclusion is promised, "lossless"
	// for those of them under which everything is, "ways" for those to the ways to servers.
	Faults  []string
	Seed    uint64
	For     time.Duration // how long faults are done
	Workers int
	// TTL is that of leases; 0: the kind's. With one, nobody who holds dies: nothing that
	// is left behind ends while the campaign lasts, so that it shows.
	TTL time.Duration
	// Expect are properties that must be seen violated: those of a row that promises
	// nothing, or the row would be promised too little.
	Expect []validate.Property
}

// ways are the faults to which no holder loses a lease that is longer than they last.
var ways = []string{
	"cut-before", "cut-after", "cut-inside", "hold-request", "hold-reply", "reset", "delay", "jitter",
	"drop-message", "hold-message", "kill-listeners", "kill-clients", "pause-clients", "flush-scripts",
}

// program is what plays anything, from the folder lab.
const program = "GOWORK=off go run ./fault"

// Command is what plays the campaign again, from the folder lab.
func (p *Plan) Command() string { return program + " " + strings.Join(p.args(), " ") }

// args are the program's.
func (p *Plan) args() []string {
	args := []string{
		"-deployment", p.Deployment, "-faults", strings.Join(p.Faults, ","),
		"-seed", fmt.Sprint(p.Seed), "-for", p.For.String(), "-workers", fmt.Sprint(p.Workers),
	}
	if p.TTL != 0 {
		args = append(args, "-ttl", p.TTL.String())
	}
	if p.Expect != nil {
		args = append(args, "-expect")
	}
	return args
}

// resolved is a plan whose names were found.
type resolved struct {
	kind   *deploy.Kind
	faults []*faults.Fault
	broken []validate.Property
}

func (p *Plan) resolve() (r resolved, err error) {
	if r.kind, err = deploy.KindOf(p.Deployment); err != nil {
		return r, err
	}
	var names []string
	for _, name := range p.Faults {
		switch name {
		case "":
		case "kept":
			names = append(names, r.kind.Kept()...)
		case "lossless":
			names = append(names, r.lossless()...)
		case "ways":
			names = append(names, ways...)
		default:
			names = append(names, name)
		}
	}
	if r.faults, err = faults.Named(names...); err != nil {
		return r, err
	}
	r.broken, err = r.kind.Broken(names)
	return r, err
}

// lossless are the faults under which the kind promises everything.
func (r *resolved) lossless() []string {
	return slices.DeleteFunc(r.kind.Kept(), func(fault string) bool {
		p, _ := r.kind.Find(fault)
		return p.Broken != nil
	})
}

// ttl is that of the campaign's leases. Two holders are seen when the first has a lease
// for long after its lock is gone.
func (r *resolved) ttl(p *Plan) time.Duration {
	if p.TTL != 0 {
		return p.TTL
	}
	if p.Expect != nil && r.kind.Mode != deploy.Sentinel { // which is longer than a failover as it is
		return 3 * r.kind.TTL
	}
	return r.kind.TTL
}

// left is for how long that lasts at most which a holder who died leaves behind.
func (r *resolved) left(p *Plan) time.Duration {
	if p.TTL != 0 {
		return 0
	}
	return r.ttl(p)
}
