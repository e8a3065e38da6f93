package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// order looks for somebody who asked when another stood in the queue already, and was
// granted first: fences are in the order of grants. Who may have been deaf meanwhile was
// passed over rightly.
func (r *Report) order(h *history.History, limits Limits) {
	for name, list := range queues(h) {
		var waiting []history.Event
		for _, e := range list {
			waiting = slices.DeleteFunc(waiting, func(w history.Event) bool { return w.Return < e.Call })
			for _, w := range waiting {
				if overtakes(e, w, limits) && !deaf(h, w, e.Return, limits) {
					r.violated(Order, name, fmt.Sprintf("asked %d µs later, and was served first", (e.Call-w.Queued)/1000), w, e)
				}
			}
			if e.Queued != 0 {
				waiting = append(waiting, e)
			}
			if e.Queued != 0 && e.Outcome == history.OK {
				r.Places.count(!deaf(h, e, e.Return, limits))
			}
		}
	}
}

// queues returns what was granted, and what was given up in the queue, by what excludes
// each other.
func queues(h *history.History) map[string][]history.Event {
	names := make(map[string][]history.Event)
	for _, e := range h.Events {
		granted := e.Op.Takes() && e.Outcome == history.OK
		if granted || e.Op == history.Acquire && e.Queued != 0 && e.Outcome == history.Cancelled {
			s := space(e.Kind, e.Name)
			names[s] = append(names[s], e)
		}
	}
	return names
}

// overtakes reports whether e was granted before w, which had its place in the queue when
// e was asked for. Readers are granted together, and what is passed on within a client is
// not asked for. Who gave up did so some time before that returned.
func overtakes(e, w history.Event, limits Limits) bool {
	fair := e.Outcome == history.OK && e.Op != history.Resume && !e.Passed && w.Queued < e.Call &&
		(e.Kind != history.Reader || w.Kind != history.Reader)
	if w.Outcome == history.OK {
		return fair && e.Fence < w.Fence
	}
	return fair && limits.took(span{e.Return, w.Return}) > limits.Recovery
}

// deaf reports whether a fault may have kept w from being served until then, or the
// machine, which stood still for so long that a grant was over before w heard of it.
func deaf(h *history.History, w history.Event, then int64, limits Limits) bool {
	if wait := (span{w.Call, then}); time.Duration(wait.till-wait.from)-limits.took(wait) > limits.Grace {
		return true
	}
	return slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		ours := f.Harms&history.Deafens != 0 || f.Stops == w.Proc
		return ours && f.From < then && recovered(f, limits) > w.Call-int64(limits.Deaf)
	})
}

// recovered is when a fault does not count any more.
func recovered(f history.Fault, limits Limits) int64 {
	if f.Till == 0 {
		return never
	}
	return f.Till + int64(limits.Recovery)
}
