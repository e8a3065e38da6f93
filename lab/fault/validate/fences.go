package validate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// grants returns what gave a lease, by what excludes each other.
func grants(h *history.History) map[string][]history.Event {
	names := make(map[string][]history.Event)
	for _, e := range h.Events {
		if e.Op.Takes() && e.Outcome == history.OK {
			s := space(e.Kind, e.Name)
			names[s] = append(names[s], e)
		}
	}
	return names
}

// fences compares each grant with the largest fence of those that returned before it was
// asked for. Readers' fences say nothing about each other.
func (r *Report) fences(h *history.History) {
	for name, list := range grants(h) {
		returned := slices.SortedFunc(slices.Values(list), func(a, b history.Event) int { return cmp.Compare(a.Return, b.Return) })
		var all, writers history.Event // with the largest fences so far
		owner := make(map[int64]history.Event)
		for _, e := range list {
			for len(returned) > 0 && returned[0].Return < e.Call {
				before := returned[0]
				returned = returned[1:]
				if before.Fence > all.Fence {
					all = before
				}
				if before.Kind != history.Reader && before.Fence > writers.Fence {
					writers = before
				}
			}
			last := all
			if e.Kind == history.Reader {
				last = writers
			} else if other, ok := owner[e.Fence]; ok {
				r.violated(Fences, name, fmt.Sprintf("two have the fence %d", e.Fence), other, e)
			} else {
				owner[e.Fence] = e
			}
			if last.Fence >= e.Fence {
				r.violated(Fences, name, fmt.Sprintf("%d after %d", e.Fence, last.Fence), last, e)
			}
		}
	}
}
