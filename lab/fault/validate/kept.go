package validate

import (
	"fmt"
	"slices"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// enough answers of the server are as many as show that a renewal would have had one.
const enough = 5

// kept looks for leases that were lost though their process lived and reached the server,
// and nothing was done to either.
func (r *Report) kept(h *history.History, lives []life, limits Limits) {
	for _, l := range lives {
		e := l.lost
		if e.Outcome != history.Lost || l.meant() || l.unrenewed() || excused(h, e.Proc, e.Return-int64(l.ttl), e.Return, limits) {
			continue
		}
		// What was renewed in time does not come to its end.
		due := l.until - int64(limits.Grace)
		if e.Return >= due && l.answers(h, due-int64(l.ttl/2), due) < enough {
			continue
		}
		r.violated(Kept, l.took.Name, fmt.Sprintf("lost %d µs before it was due, and nothing was done to it", (l.until-e.Return)/1000), l.took, e)
	}
}

// meant reports whether the lease was lost because somebody wanted that.
func (l *life) meant() bool {
	switch zamok.LossReason(l.lost.Reason) {
	case zamok.LostBroken, zamok.LostClosed:
		return true
	case zamok.LostMaxHold:
		return l.took.Most != 0 && l.lost.Return-l.took.Call >= l.took.Most-int64(l.ttl)/4 // less its grace
	default:
		return false
	}
}

// unrenewed reports whether the context that the lease was taken under had ended before.
func (l *life) unrenewed() bool {
	return slices.ContainsFunc(l.events, func(e history.Event) bool {
		return e.Op == history.Ended && e.Outcome == history.Cancelled && e.Call <= l.lost.Return
	})
}

// excused reports whether something was done between the two stamps that may explain what
// the process saw.
func excused(h *history.History, proc string, from, till int64, limits Limits) bool {
	return slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		return (f.Harms != 0 || f.Stops == proc) && f.From < till && recovered(f, limits) > from
	})
}

// answers is how many times the process asked the server between the two stamps and had
// its answer, less several for each that came late, by a part of the time that a renewal is
// given. It shows that process, way and server worked all the while, on however busy a
// machine. What may wait is left out.
func (l *life) answers(h *history.History, from, till int64) (n int) {
	const late = 5
	for _, e := range h.Events {
		asked := e.Op == history.Try || e.Op == history.Release || e.Op == history.Read || e.Op == history.Renew
		switch {
		case e.Call > till:
			return n
		case !asked || e.Proc != l.took.Proc || e.Kind == history.Outside || e.Return != 0 && e.Return < from:
		case e.Return == 0 || e.Return-e.Call >= int64(l.ttl/10):
			n -= late
		case e.Call > from && e.Return < till:
			n++
		}
	}
	return n
}
