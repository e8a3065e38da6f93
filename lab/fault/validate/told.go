package validate

import (
	"fmt"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// told looks for holders that believed in a lease for longer than they may.
func (r *Report) told(h *history.History, lives []life, limits Limits) {
	quiet := quietEnds(h)
	for _, l := range lives {
		r.deadlines(h, l, limits)
		if quiet[l.took.Proc] || l.died != 0 {
			continue
		}
		r.ended(h, l, limits)
	}
}

// deadlines: no lease is granted for longer than was asked for, and none is said to hold
// after its deadline.
func (r *Report) deadlines(h *history.History, l life, limits Limits) {
	e := l.took
	// A goroutine that was late may have seen one that was raised meanwhile.
	if e.TTL != 0 && e.Until > e.Return+2*e.TTL && !excused(h, e.Proc, e.Call-e.TTL, e.Return, limits) {
		r.violated(Told, e.Name, fmt.Sprintf("granted for %v, and %v was asked for", time.Duration(e.Until-e.Return), l.ttl), e)
	}
	for _, look := range l.events {
		if look.Op != history.Look || look.Outcome != history.OK {
			continue
		}
		if look.Call > look.Until+int64(limits.Grace) {
			r.violated(Told, e.Name, fmt.Sprintf("said to hold %d µs after its deadline", (look.Call-look.Until)/1000), e, look)
		}
		if e.Most != 0 && look.Call > e.Return+e.Most {
			r.violated(Told, e.Name, fmt.Sprintf("said to hold for longer than %v", time.Duration(e.Most)), e, look)
		}
	}
}

// busy is how much a process does before it is said to have had the time for something.
const busy = 10

// ended: the context ends when the lease is given back, when its holder is told of a loss,
// or at its deadline. How late that is, is measured by what the process did meanwhile.
func (r *Report) ended(h *history.History, l life, limits Limits) {
	due, end := l.until, int64(never)
	for _, e := range l.events {
		switch {
		case e.Op == history.Ended:
			end = e.Return
		case e.Op == history.Release || e.Op == history.Detach && e.Outcome == history.OK:
			if e.Return != 0 {
				due = min(due, e.Return)
			}
		case tellsLoss(e):
			due = min(due, e.Return)
		}
	}
	due += int64(limits.Recovery)
	if end <= due {
		return
	}
	did := 0
	for _, e := range h.Events {
		if e.Proc == l.took.Proc && e.Call > due && e.Return < end && e.Op != history.Ended {
			did++
		}
	}
	if did >= busy {
		r.violated(Told, l.took.Name, "its context did not end in time", l.took, l.events[len(l.events)-1])
	}
}

// quietEnds are the processes that tell of no context's end.
func quietEnds(h *history.History) map[string]bool {
	quiet := make(map[string]bool)
	for _, e := range h.Events {
		if _, ok := quiet[e.Proc]; !ok || e.Op == history.Ended {
			quiet[e.Proc] = e.Op != history.Ended
		}
	}
	return quiet
}

// slow: who has lost a lock to another is told by the next renewal, a third of the TTL
// later. That the lock was the other's until then shows in what the server did for it.
func (r *Report) slow(h *history.History, name string, old, other hold, limits Limits) {
	if old.kind == history.Permit {
		return // any of them may have been lost
	}
	from := other.start + int64(old.ttl/3+2*limits.Grace)
	till := min(old.seen, other.known)
	if till > from && old.answers(h, other.start+int64(old.ttl/3), till) >= enough {
		r.violated(Told, name, fmt.Sprintf("was not told within %v that another has it", time.Duration(till-other.start)), old.took, other.took)
	}
}
