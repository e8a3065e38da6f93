package validate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// handOver is zamok.Config.HandOver: for how long those of one client pass a lock on
// among themselves.
const handOver = 5 * time.Millisecond

// turns looks for locks that were passed on when the turn was over: by a release that was
// asked for later than that after the server's grant had returned.
func (r *Report) turns(h *history.History) {
	released := make(map[string]history.Event) // by lease
	for _, e := range h.Events {
		if e.Op == history.Release {
			released[e.Lease] = e
		}
	}
	for name, list := range grants(h) {
		slices.SortFunc(list, func(a, b history.Event) int { return cmp.Compare(a.Fence, b.Fence) })
		var first history.Event // of the turn
		for i, e := range list {
			if !e.Passed {
				first = e
				continue
			}
			r.PassedOn++
			if first.Proc != e.Proc || list[i-1].Fence != e.Fence-1 {
				continue // who began it, or whose release it was, is not known
			}
			before := released[list[i-1].Lease]
			if late := time.Duration(before.Call - first.Return - int64(handOver)); late > 0 {
				r.violated(Order, name, fmt.Sprintf("passed on %v after the end of the turn", late), first, before, e)
			}
		}
	}
}
