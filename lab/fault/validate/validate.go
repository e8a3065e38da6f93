package validate

import (
	"fmt"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// Property is what a history can violate.
type Property string

const (
	// Exclusion: at no moment are more leases of a name within their validity than it
	// allows: one writer, or readers, or so many permits.
	Exclusion Property = "one holder within validity"
	// Fences: who asks after another had its lease gets a larger fence.
	Fences Property = "fences grow"
	// Object: there is an order of grants, releases and looks in which a lease ends by
	// its release or when it is due, and fences grow.
	Object Property = "a lock ends by release or when due"
	// Guarded: no write by a guarded script came after that of a later holder.
	Guarded Property = "no stale guarded write"
	// Outside: the same, of a resource that compares fences; and the newest holder is
	// not refused.
	Outside Property = "no stale write outside"
	// Order: who stands in the queue is served before those who ask later.
	Order Property = "first come, first served"
	// Liveness: a lock that is free and wanted is taken within Limits.Stall.
	Liveness Property = "what is free is taken"
	// Residue: when the last lease is over, no lock is left on the server, and no key
	// of zamok that does not end, but those that are documented.
	Residue Property = "nothing is left"
	// Once: a thing has one outcome, and was not done again after it was known.
	Once Property = "one outcome"
	// Kept: a lease is not lost while its holder lives and reaches the server.
	Kept Property = "a lease lasts while it is renewed"
	// Told: a holder learns in time that its lease is over: at its deadline at the latest,
	// and by the next renewal when another has the lock.
	Told Property = "a holder is told in time"
	// Refusal: nobody is told that another holds when nobody does, and nothing fails when
	// nothing is wrong.
	Refusal Property = "no refusal for nothing"
)

// Properties are all of them.
var Properties = []Property{Exclusion, Fences, Object, Guarded, Outside, Order, Liveness, Residue, Once, Kept, Told, Refusal}

// Violation is what should not have happened.
type Violation struct {
	Property Property
	Name     string // of the lock, register, key
	Text     string
	Events   []history.Event // those that show it
}

// Limits are what a check is to be measured by.
type Limits struct {
	// Stall is for how long a free lock may be wanted by a waiter that lives, while no
	// fault lasts.
	Stall time.Duration
	// Dead is added to that for each waiter that died in the queue: who stands behind them
	// asks less often.
	Dead time.Duration
	// Stood is for how long the machine stood still between two stamps, which nobody can be
	// blamed for. nil: never.
	Stood func(from, till int64) time.Duration
	// Recovery is for how long after its end a fault still excuses what it excuses.
	Recovery time.Duration
	// Deaf is for how much longer it excuses that somebody did not hear.
	Deaf time.Duration
	// Grace is how long before its deadline a holder gives a lease up that is not
	// renewed.
	Grace time.Duration
	// Search is how long the search for an order may take for each name.
	Search time.Duration
	// Pictures is the folder for Porcupine's pictures of what has no order. Empty: none.
	Pictures string
}

// took is how long a time was for those who would have used it.
func (l *Limits) took(s span) time.Duration {
	long := time.Duration(s.till - s.from)
	if l.Stood != nil {
		long -= l.Stood(s.from, s.till)
	}
	return long
}

// Report is what was found in a history.
type Report struct {
	Violations []Violation

	Operations int // that returned
	Holds      int
	HandedOver int // grants by the release of the last holder
	PassedOn   int // those of them within one client
	Unknown    int // outcomes that the caller did not learn
	Undecided  int // names for which Limits.Search was too short

	LongestStall  time.Duration // see Liveness
	LongestOrphan time.Duration // a stall that began with the death of the holder

	Waits  Judged // by Liveness
	Places Judged // in queues that ended with a grant, by Order
}

// Judged is of how many nothing was excused, for no fault that would have was near.
type Judged struct{ Judged, All int }

// Add adds those of another history.
func (j *Judged) Add(o Judged) {
	j.Judged += o.Judged
	j.All += o.All
}

func (j Judged) String() string { return fmt.Sprintf("%d of %d", j.Judged, j.All) }

func (j *Judged) count(judged bool) {
	if j.All++; judged {
		j.Judged++
	}
}

// Check makes all checks.
func Check(h *history.History, limits Limits) *Report {
	r := new(Report)
	r.count(h)
	lives := findLives(h)
	all := findHolds(lives)
	r.Holds = len(all)
	r.exclusion(h, all, limits)
	r.fences(h)
	r.order(h, limits)
	r.liveness(h, all, limits)
	r.objects(lives, limits)
	r.kept(h, lives, limits)
	r.told(h, lives, limits)
	r.refusals(h, lives, limits)
	r.registers(h, limits)
	r.times(h)
	r.turns(h)
	r.residue(h)
	r.once(h, limits)
	return r
}

func (r *Report) count(h *history.History) {
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Op == history.Key:
		case e.Outcome == history.Unknown || e.Outcome == history.Pending:
			r.Unknown++
		default:
			r.Operations++
			if e.Handed {
				r.HandedOver++
			}
		}
	}
}

func (r *Report) violated(p Property, name, text string, events ...history.Event) {
	r.Violations = append(r.Violations, Violation{p, name, text, events})
}
