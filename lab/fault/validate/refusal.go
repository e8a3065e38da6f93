package validate

import "github.com/zamok-go/zamok/lab/fault/history"

// attempt is what may have kept others out for a time: somebody who asked, and what came
// of it.
type attempt struct {
	history.Event
	span
}

// refusals looks for those who were told that another holds when nobody can have, and for
// what failed at once though nothing was done to anybody.
func (r *Report) refusals(h *history.History, lives []life, limits Limits) {
	names := make(map[string][]attempt)
	gone := make(map[string]int64)
	for _, l := range lives {
		gone[l.took.Lease] = l.over(limits)
	}
	for _, e := range h.Events {
		if e.Op.Takes() {
			s := space(e.Kind, e.Name)
			names[s] = append(names[s], attempt{e, span{e.Call, keptOut(e, gone, limits)}})
		}
	}
	for _, e := range h.Events {
		ttl := max(e.TTL, 0)
		if e.Return == 0 || excused(h, e.Proc, e.Call-ttl, e.Return, limits) {
			continue
		}
		switch {
		case e.Op.Takes() && e.Outcome == history.Held:
			if s := space(e.Kind, e.Name); !inTheWay(e, names[s]) {
				r.violated(Refusal, s, "another was said to hold it, and nobody can have", e)
			}
		case (e.Outcome == history.Refused || e.Outcome == history.Unknown) && asksServer(e) && e.Return-e.Call < int64(limits.Grace):
			r.violated(Refusal, e.Name, "it failed at once, and nothing was wrong: "+e.Text, e)
		}
	}
}

// over is when the server surely has nothing of the lease any more.
func (l *life) over(limits Limits) int64 {
	if l.gone != 0 && l.lost.Outcome == history.Pending {
		return l.gone + l.took.Least // what was left of it begins anew with the release
	}
	last := l.events[len(l.events)-1]
	return max(l.until, last.Return, last.Call, l.died) + int64(l.ttl+limits.Grace)
}

// keptOut is until when e may have kept others out, at most.
func keptOut(e history.Event, gone map[string]int64, limits Limits) int64 {
	switch {
	case e.Outcome == history.OK:
		return gone[e.Lease]
	case e.Outcome == history.Pending:
		return never
	case e.Outcome == history.Held && e.Op == history.Try:
		return e.Return + int64(limits.Grace) // of a quorum, members that granted are told
	default: // what the server may have done is undone behind
		return e.Return + e.TTL + int64(limits.Grace)
	}
}

// inTheWay reports whether others can have kept e out, or stood in the queue.
func inTheWay(e history.Event, all []attempt) bool {
	need := max(e.Limit, 1)
	for _, a := range all {
		switch {
		case a.from > e.Return || a.till < e.Call || a.ID == e.ID && a.Proc == e.Proc:
		case a.Op == history.Acquire && (a.Return == 0 || a.Return >= e.Call):
			return true // it may have waited
		case e.Kind == history.Reader && a.Kind == history.Reader && a.Outcome == history.OK:
		default:
			need--
		}
	}
	return need <= 0
}

// asksServer reports whether e, if it failed, failed by an error of the server's or the
// library's: other calls may fail because the caller's context has ended.
func asksServer(e history.Event) bool {
	return e.Op.Takes() || e.Op == history.Release && e.Text != ""
}
