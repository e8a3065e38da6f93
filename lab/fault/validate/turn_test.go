package validate

import (
	"testing"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// A turn is over so long after the grant that began it, whoever had it meanwhile.
func TestTurns(t *testing.T) {
	const us = int64(time.Microsecond)
	turn := func(last int64) []event {
		passed := func(e event) event { e.Passed, e.Proc = true, "pa"; return e }
		return []event{
			take("a", 10*us, 100*us, 1, 1e9), freed("a", 4000*us, 4001*us),
			passed(take("b", 50*us, 4002*us, 2, 1e9)), freed("b", last, last+us),
			passed(take("c", 60*us, last+2*us, 3, 1e9)), freed("c", last+3*us, last+4*us),
		}
	}
	for last, want := range map[int64]int{5000 * us: 0, 5101 * us: 1} {
		h := &history.History{Events: turn(last)}
		r := new(Report)
		if r.turns(h); r.PassedOn != 2 || len(r.Violations) != want {
			t.Errorf("released at %d µs: %d passed on, want 2; %d violations, want %d: %+v", last/us, r.PassedOn, len(r.Violations), want, r.Violations)
		}
	}
}
