package run

import (
	"testing"

	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// A history of nothing but failures tells nothing, and neither does one whose grants all
// come before the last fault.
func TestIdle(t *testing.T) {
	for _, s := range []struct {
		deployment string
		wanted     int // so many things
	}{{"aof", 7}, {"quorum3", 2}} {
		p := Plan{Deployment: s.deployment, Faults: kept}
		found, err := p.resolve()
		if err != nil {
			t.Fatal(err)
		}
		c := &campaign{plan: p, resolved: found}
		busy := new(history.History)
		for _, kind := range []history.Kind{history.Mutex, history.Reader, history.Writer, history.Permit, history.Retry} {
			op := history.Acquire
			if kind == history.Retry {
				op = history.Run
			}
			for range least {
				busy.Events = append(busy.Events, history.Event{Op: op, Kind: kind, Call: 9, Return: 10, Outcome: history.OK, Handed: kind == history.Mutex})
			}
		}
		checked := &validate.Report{Waits: validate.Judged{Judged: least, All: least}}
		if list := c.idle(busy, checked); len(list) != 0 {
			t.Errorf("%s: %q is too little of a busy history", s.deployment, list)
		}
		checked.Waits.Judged = 0
		busy.Faults = []history.Fault{{Harms: history.Stalls, From: 10, Till: 11}}
		if list := c.idle(busy, checked); len(list) != s.wanted {
			t.Errorf("%s: %q is too little after the last fault, want %d", s.deployment, list, s.wanted)
		}
		if res := (&Result{Idle: []string{"x"}}); res.OK() {
			t.Error("a campaign in which nothing was tried is well")
		}
	}
}
