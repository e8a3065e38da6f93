package validate

import (
	"cmp"
	"math"
	"slices"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// never is after all stamps.
const never = math.MaxInt64

// hold is a time in which somebody believed to have a lease.
type hold struct {
	kind   history.Kind
	took   history.Event // which gave it
	start  int64
	end    int64 // no later than it surely lasted; maybe before start
	freed  int64 // no earlier than the server was told, or it was over for another reason
	until  int64 // the last deadline that was seen
	orphan bool  // its process died with it
}

// findHolds finds all holds, in the order of their starts.
func findHolds(h *history.History) []hold {
	died := deaths(h)
	leases := make(map[string][]history.Event)
	for _, e := range h.Events {
		if e.Lease != "" {
			leases[e.Lease] = append(leases[e.Lease], e)
		}
	}
	var all []hold
	for _, events := range leases {
		for _, one := range holdsOf(events) {
			if at, ok := died[one.took.Proc]; ok && at < one.freed {
				one.end, one.freed, one.orphan = min(one.end, at), at, true
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b hold) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.took.Lease, b.took.Lease))
	})
	return all
}

// holdsOf follows one lease, its events in the order of Call. There are two holds when it
// was downgraded.
func holdsOf(events []history.Event) []hold {
	var all []hold
	var h *hold
	var seen, until int64 // that it was held, by its deadline
	lost := false
	over := func(end, freed int64) {
		if h == nil {
			return
		}
		if h.end, h.freed, h.until = min(end, until), freed, until; lost {
			h.end = min(h.end, seen)
		}
		all = append(all, *h)
		h = nil
	}
	for _, e := range events {
		switch ok := e.Outcome == history.OK; {
		case e.Op.Takes() && ok:
			h = &hold{kind: e.Kind, took: e, start: e.Return}
			seen, until = e.Return, e.Until
		case e.Outcome == history.Lost && h != nil && e.Op != history.Release:
			if !lost {
				lost, h.freed = true, e.Return
			}
		case e.Op == history.Look && ok, e.Op == history.Renew && ok:
			seen, until = max(seen, e.Call), max(until, e.Until)
		case e.Op == history.Release || e.Op == history.Detach:
			freed := e.Return
			if e.Outcome != history.OK && e.Outcome != history.Lost {
				freed = max(e.Return, until)
			}
			over(e.Call, freed)
		case e.Op == history.Downgrade:
			over(e.Call, max(e.Return, e.Call))
			if ok {
				h = &hold{kind: history.Reader, took: e, start: e.Return}
			}
		}
	}
	if h != nil && h.freed == 0 {
		h.freed = until
	}
	if h != nil {
		over(never, h.freed)
	}
	return all
}

// deaths says when each process was killed.
func deaths(h *history.History) map[string]int64 {
	died := make(map[string]int64)
	for _, f := range h.Faults {
		if f.Kills != "" {
			died[f.Kills] = f.From
		}
	}
	return died
}
