package validate

import (
	"fmt"
	"slices"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// thing is what happened to one key of package once.
type thing struct {
	kind  history.Kind
	runs  []history.Event
	calls []history.Event
}

// once compares what the calls of a key were told with what was run.
func (r *Report) once(h *history.History, limits Limits) {
	died := deaths(h)
	things := make(map[string]*thing)
	for _, e := range h.Events {
		if e.Op != history.Once && e.Op != history.Run {
			continue
		}
		t := things[e.Name]
		if t == nil {
			t = &thing{kind: e.Kind}
			things[e.Name] = t
		}
		if e.Op == history.Run {
			t.runs = append(t.runs, e)
		} else if e.Outcome == history.OK {
			t.calls = append(t.calls, e)
		}
	}
	for name, t := range things {
		r.outcomes(name, t)
		r.runs(h, name, t, died, limits)
	}
}

// outcomes: all calls tell of the same one, and a run made it.
func (r *Report) outcomes(name string, t *thing) {
	for _, call := range t.calls {
		if first := t.calls[0]; call.Value != first.Value {
			r.violated(Once, name, fmt.Sprintf("the outcomes %d and %d", first.Value, call.Value), first, call)
		}
		made := slices.ContainsFunc(t.runs, func(run history.Event) bool { return run.Value == call.Value && run.Call < call.Return })
		if !made {
			r.violated(Once, name, fmt.Sprintf("the outcome %d, which no run had", call.Value), call)
		}
	}
}

// runs: under GiveUp there is one; under Retry none begins while another is within its
// validity, nor after one that had succeeded unless something was done that can have kept
// that from being written down; and none begins when the outcome is known.
func (r *Report) runs(h *history.History, name string, t *thing, died map[string]int64, limits Limits) {
	for i, run := range t.runs {
		for _, call := range t.calls {
			if call.Return < run.Call {
				r.violated(Once, name, "run when its outcome was known", call, run)
			}
		}
		for _, before := range t.runs[:i] {
			end := before.Until
			if before.Return != 0 {
				end = min(end, before.Return)
			}
			if at, ok := died[before.Proc]; ok {
				end = min(end, at)
			}
			switch {
			case t.kind == history.GiveUp:
				r.violated(Once, name, "run twice", before, run)
			case run.Call < end:
				r.violated(Once, name, "run while another run went on", before, run)
			case before.Outcome == history.OK && before.Return < run.Call && died[before.Proc] == 0 && !excused(h, before.Proc, before.Call, run.Call, limits):
				r.violated(Once, name, "run again after a run that had succeeded", before, run)
			}
		}
	}
}
