package history

import (
	"maps"
	"slices"
)

// closed is zamok's reason of what its own process ended.
const closed = "client closed"

// SoFar has those who wait in an unfinished history give up now, and all leases end, so
// that what is seen in it is still seen when it is finished.
func (h *History) SoFar() *History {
	now := Now()
	open := make(map[string]Event)
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Op == Acquire && e.Outcome == Pending:
			e.Outcome, e.Return = Cancelled, now
		case e.Op.Takes() && e.Outcome == OK:
			open[e.Lease] = Event{Op: Look, Name: e.Name, Lease: e.Lease, Call: now, Return: now, Outcome: Lost, Reason: closed}
		case e.Op == Release:
			delete(open, e.Lease)
		}
	}
	h.Events = slices.AppendSeq(h.Events, maps.Values(open))
	return h
}
