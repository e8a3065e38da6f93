package validate

import (
	"fmt"
	"slices"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// order looks for somebody who asked when another stood in the queue already, and was
// granted first: fences are in the order of grants. Who may have been deaf meanwhile was
// passed over rightly.
func (r *Report) order(h *history.History, limits Limits) {
	for name, list := range grants(h) {
		var waiting []history.Event
		for _, e := range list {
			waiting = slices.DeleteFunc(waiting, func(w history.Event) bool { return w.Return < e.Call })
			for _, w := range waiting {
				late := e.Op != history.Resume && w.Queued != 0 && w.Queued < e.Call && e.Fence < w.Fence
				if late && !deaf(h, w, e.Return, limits) {
					r.violated(Order, name, fmt.Sprintf("asked %d µs later, and was served first", (e.Call-w.Queued)/1000), w, e)
				}
			}
			waiting = append(waiting, e)
			if e.Queued != 0 {
				r.Places.count(!deaf(h, e, e.Return, limits))
			}
		}
	}
}

// deaf reports whether a fault may have kept w from being served until then.
func deaf(h *history.History, w history.Event, then int64, limits Limits) bool {
	return slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		ours := f.Harms&history.Deafens != 0 || f.Stops == w.Proc
		return ours && f.From < then && recovered(f, limits) > w.Call
	})
}

// recovered is when a fault does not count any more.
func recovered(f history.Fault, limits Limits) int64 {
	if f.Till == 0 {
		return never
	}
	return f.Till + int64(limits.Recovery)
}
