package run

import (
	"slices"
	"testing"

	"github.com/zamok-go/zamok/lab/fault/validate"
)

// Nothing is played of which no promise is known, and what is expected is not promised.
func TestPlans(t *testing.T) {
	for _, p := range append(slices.Clone(suite), rare...) {
		r, err := p.resolve()
		if err != nil {
			t.Errorf("%s: %v", p.Deployment, err)
			continue
		}
		if len(r.faults) == 0 {
			t.Errorf("%s: no fault", p.Deployment)
		}
		for _, e := range p.Expect {
			if !slices.Contains(r.broken, e) {
				t.Errorf("%s with %v: %q is promised and expected to be violated", p.Deployment, p.Faults, e)
			}
		}
		if slices.Equal(p.Faults, lossless) && slices.ContainsFunc(r.broken, func(b validate.Property) bool { return b != validate.Order }) {
			t.Errorf("%s: %q is not promised", p.Deployment, r.broken)
		}
		if slices.Equal(p.Faults, kept) && slices.Contains(r.broken, validate.Exclusion) {
			t.Errorf("%s: not kept", p.Deployment)
		}
	}
	for _, bad := range []Plan{
		{Deployment: "none", Faults: kept}, {Deployment: "aof", Faults: []string{"none"}},
		{Deployment: "cluster", Faults: []string{"flush-all"}},
	} {
		if _, err := bad.resolve(); err == nil {
			t.Errorf("%+v is no plan", bad)
		}
	}
}
