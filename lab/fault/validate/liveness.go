package validate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// span is a time in which something was so.
type span struct{ from, till int64 }

// wanted is what matters to one name: who waited, who held, and what kept the server
// from granting anything.
type wanted struct {
	limit  int // so many may hold
	waits  []span
	dead   int // of those who waited, how many died
	holds  []span
	orphan map[int64]bool // ends of holds whose process died with them
}

// liveness looks for times in which somebody who lives waits, less than the limit hold,
// and no fault excuses it.
func (r *Report) liveness(h *history.History, all []hold, limits Limits) {
	var stalls []span
	for _, f := range h.Faults {
		if f.Harms&history.Stalls != 0 {
			stalls = append(stalls, span{f.From, recovered(f, limits)})
		}
	}
	for name, w := range wantedNames(h, all) {
		for _, wait := range w.waits {
			r.Waits.count(slices.Equal(without(wait, stalls), []span{wait}))
		}
		idle(w, stalls, func(s span) {
			long := limits.took(s)
			r.LongestStall = max(r.LongestStall, long)
			if w.orphan[s.from] {
				r.LongestOrphan = max(r.LongestOrphan, long)
			}
			if most := limits.Stall + time.Duration(w.dead)*limits.Dead; long > most {
				r.violated(Liveness, name, fmt.Sprintf("free and wanted for %v, which is more than %v", long, most), waiters(h, name, s)...)
			}
		})
	}
}

func wantedNames(h *history.History, all []hold) map[string]*wanted {
	names := make(map[string]*wanted)
	died, stopped := deaths(h), stops(h)
	for _, e := range h.Events {
		if e.Op != history.Acquire {
			continue
		}
		s := space(e.Kind, e.Name)
		if names[s] == nil {
			names[s] = &wanted{limit: max(e.Limit, 1), orphan: make(map[int64]bool)}
		}
		till, dead := died[e.Proc]
		switch {
		case e.Return != 0:
			till, dead = e.Return, true
		case dead:
			names[s].dead++
		}
		if dead { // of one that neither returned nor died nothing is known
			names[s].waits = append(names[s].waits, without(span{e.Call, till}, stopped[e.Proc])...)
		}
	}
	for _, h := range all {
		if w := names[space(h.kind, h.took.Name)]; w != nil {
			w.holds = append(w.holds, span{h.start, h.freed})
			if h.orphan {
				w.orphan[h.freed] = true
			}
		}
	}
	return names
}

// stops says when each process stood still, in order.
func stops(h *history.History) map[string][]span {
	stopped := make(map[string][]span)
	for _, f := range h.Faults {
		if f.Stops != "" {
			stopped[f.Stops] = append(stopped[f.Stops], span{f.From, recovered(f, Limits{})})
		}
	}
	return stopped
}

// without returns what is left of s when the others, which are in order, are cut out.
func without(s span, others []span) []span {
	var left []span
	for _, o := range others {
		if o.till <= s.from || o.from >= s.till {
			continue
		}
		if s.from < o.from {
			left = append(left, span{s.from, o.from})
		}
		s.from = max(s.from, o.till)
	}
	if s.from < s.till {
		left = append(left, s)
	}
	return left
}

// idle calls found for each longest time in which the name was free and wanted.
func idle(w *wanted, stalls []span, found func(span)) {
	const waits, holds, faults = 0, 1, 2
	type point struct {
		at       int64
		of, more int
	}
	var points []point
	for of, spans := range [][]span{waits: w.waits, holds: w.holds, faults: stalls} {
		for _, s := range spans {
			points = append(points, point{s.from, of, 1}, point{s.till, of, -1})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	var now [3]int
	var since int64
	free := false
	for i, p := range points {
		now[p.of] += p.more
		if i+1 < len(points) && points[i+1].at == p.at {
			continue
		}
		was := free
		free = now[waits] > 0 && now[holds] < w.limit && now[faults] == 0
		if free && !was {
			since = p.at
		} else if was && !free {
			found(span{since, p.at})
		}
	}
}

// waiters returns some of those who waited for the name then.
func waiters(h *history.History, name string, s span) []history.Event {
	const enough = 5
	var list []history.Event
	for _, e := range h.Events {
		if e.Op == history.Acquire && space(e.Kind, e.Name) == name && e.Call < s.till && (e.Return == 0 || e.Return >= s.till) && len(list) < enough {
			list = append(list, e)
		}
	}
	return list
}
