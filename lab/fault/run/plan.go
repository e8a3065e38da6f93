package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/faults"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// Plan is one campaign.
type Plan struct {
	Deployment string
	Faults     []string // by name; "kept" stands for all under which exclusion is promised
	Seed       uint64
	For        time.Duration // how long faults are done
	Workers    int
	// Expect are properties that must be seen violated: those of a row that promises
	// nothing, or the row would be promised too little.
	Expect []validate.Property
}

// program is what plays anything, from the folder lab.
const program = "GOWORK=off go run ./fault"

// Command is what plays the campaign again, from the folder lab.
func (p *Plan) Command() string {
	text := fmt.Sprintf("%s -deployment %s -faults %s -seed %d -for %v -workers %d",
		program, p.Deployment, strings.Join(p.Faults, ","), p.Seed, p.For, p.Workers)
	if p.Expect != nil {
		text += " -expect"
	}
	return text
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
		if name == "kept" {
			names = append(names, r.kind.Kept()...)
		} else if name != "" {
			names = append(names, name)
		}
	}
	if r.faults, err = faults.Named(names...); err != nil {
		return r, err
	}
	r.broken, err = r.kind.Broken(names)
	return r, err
}

// ttl is that of the campaign's leases. Two holders are seen when the first has a lease
// for long after its lock is gone.
func (r *resolved) ttl(p *Plan) time.Duration {
	if p.Expect != nil && r.kind.Mode == deploy.Single {
		return 3 * r.kind.TTL
	}
	return r.kind.TTL
}
