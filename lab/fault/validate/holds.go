package validate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// never is after all stamps.
const never = math.MaxInt64

// life is all that is known of one lease.
type life struct {
	took   history.Event   // which gave it
	events []history.Event // that one, and what was done with it, in the order of Call
	ttl    time.Duration   // what was asked for; of one that was resumed what it had
	until  int64           // the last deadline that was seen
	lost   history.Event   // the first that told of a loss before it was given back; Pending: none
	gone   int64           // when the server had been told that it is over; 0: it was not
	died   int64           // when its process was killed; 0: it was not
}

// findLives finds all leases that were granted, in the order of that.
func findLives(h *history.History) []life {
	died := deaths(h)
	leases := make(map[string]int)
	var all []life
	for _, e := range h.Events {
		i, ok := leases[e.Lease]
		switch {
		case e.Op.Takes() && e.Outcome == history.OK:
			leases[e.Lease] = len(all)
			all = append(all, life{took: e, events: []history.Event{e}, ttl: time.Duration(e.TTL), until: e.Until, died: died[e.Proc]})
		case ok && e.Lease != "":
			all[i].add(e)
		}
	}
	for i := range all {
		if l := &all[i]; l.ttl == 0 {
			l.ttl = time.Duration(l.took.Until - l.took.Return)
		}
	}
	return all
}

func (l *life) add(e history.Event) {
	l.events = append(l.events, e)
	l.until = max(l.until, e.Until)
	switch {
	case e.Op == history.Release:
		if e.Outcome == history.OK || e.Outcome == history.Lost {
			l.gone = e.Return
		}
	case tellsLoss(e) && l.lost.Outcome == history.Pending:
		l.lost = e
	}
}

// hold is a time in which somebody believed to have a lease.
type hold struct {
	*life
	kind   history.Kind
	took   history.Event // which gave it
	start  int64
	end    int64 // no later than it surely lasted; maybe before start
	freed  int64 // no earlier than the server was told, or it was over for another reason
	seen   int64 // the last time that it was seen to hold
	known  int64 // the last time that the server is known to have had it
	orphan bool  // its process died with it
}

// findHolds finds all holds, in the order of their starts.
func findHolds(lives []life) []hold {
	var all []hold
	for i := range lives {
		for _, one := range lives[i].holds() {
			if at := lives[i].died; at != 0 && at < one.freed {
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

// holds are two when it was downgraded, or may have been.
func (l *life) holds() []hold {
	var all []hold
	var h *hold
	var until int64 // its deadline, as far as it was seen
	lost := false
	over := func(end, freed int64) {
		if h == nil {
			return
		}
		if h.end, h.freed = min(end, until), freed; lost {
			h.end = min(h.end, h.seen)
		}
		all = append(all, *h)
		h = nil
	}
	begin := func(kind history.Kind, e history.Event) {
		h = &hold{life: l, kind: kind, took: e, start: e.Return, seen: e.Return, known: e.Call}
	}
	for _, e := range l.events {
		until = max(until, e.Until)
		ok := e.Outcome == history.OK
		if ok && h != nil && (e.Op == history.Renew || e.Op == history.Release || e.Op == history.Downgrade || guarded(e)) {
			h.known = e.Call
		}
		switch {
		case e.Op.Takes():
			begin(e.Kind, e)
		case tellsLoss(e) && h != nil && e.Op != history.Release:
			if !lost {
				lost, h.freed = true, e.Return
			}
		case ok && h != nil && (e.Op == history.Look || e.Op == history.Renew):
			h.seen = max(h.seen, e.Call)
		case e.Op == history.Release || e.Op == history.Detach:
			freed := e.Return
			if !ok && e.Outcome != history.Lost {
				freed = max(e.Return, until)
			}
			over(e.Call, freed)
		case e.Op == history.Downgrade:
			over(e.Call, max(e.Return, e.Call))
			if e.Return != 0 && e.Outcome != history.Lost { // if it was not done, the more it is held
				begin(history.Reader, e)
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

// tellsLoss reports whether e tells that the lease was lost. Its context may end with that
// of another lease, and a write that was not done may have met something else.
func tellsLoss(e history.Event) bool {
	return e.Outcome == history.Lost && e.Op != history.Ended && e.Op != history.Write
}

// guarded reports whether e is a write that the server does only for a holder.
func guarded(e history.Event) bool {
	return e.Op == history.Write && (e.Kind == history.Guarded || e.Kind == history.Shared)
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
