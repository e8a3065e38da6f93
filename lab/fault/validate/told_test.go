package validate

import (
	"fmt"
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// alive is what the process of a lease asks the server meanwhile, and is answered.
func alive(lease string, stamps ...int64) []event {
	var list []event
	for _, at := range stamps {
		list = append(list, event{Op: history.Read, Kind: history.Guarded, Name: "other", Proc: "p" + lease, Call: at, Return: at + 1, Outcome: history.OK})
	}
	return list
}

func because(r zamok.LossReason, e event) event { e.Reason = string(r); return e }

func TestKept(t *testing.T) {
	wrong := []Property{Kept}
	lost := func(at int64) event { return of("a", history.Look, at, at+1, history.Lost) }
	heard := func(events ...event) []event { // by a process that the server answered
		return append(append(events, take("a", 1, 2, 1, 100)), alive("a", 50, 55, 60, 70, 80)...)
	}
	scenes(t, []scene{
		{what: "at once", events: []event{take("a", 1, 2, 1, 100), lost(3)}, want: []Property{Kept, Object}},
		{what: "at its deadline, for no reason", events: heard(lost(96)), want: wrong},
		{what: "at its deadline, on a machine that did little else", events: append(alive("a", 50, 60), take("a", 1, 2, 1, 100), lost(96))},
		{what: "at its deadline, on a machine that was slow", events: heard(lost(96), event{Op: history.Read, Kind: history.Guarded, Proc: "pa", Call: 62, Return: 72, Outcome: history.OK})},
		{what: "at its deadline, after a fault", events: heard(lost(96)), faults: []history.Fault{{Harms: history.Stalls, From: 20, Till: 40}}},
		{what: "at its deadline, long after a fault", events: heard(lost(120)), faults: []history.Fault{{Harms: history.Stalls, From: 3, Till: 5}}, want: wrong},
		{what: "at its deadline, when its process stood still", events: heard(lost(96)), faults: []history.Fault{{Stops: "pa", From: 20, Till: 40}}},
		{what: "at its deadline, when another stood still", events: heard(lost(96)), faults: []history.Fault{{Stops: "pb", From: 20, Till: 40}}, want: wrong},
		{what: "when the context that it was taken under had ended", events: heard(ends(history.Cancelled, of("a", history.Ended, 20, 20, "")), lost(96))},
		{what: "broken by an operator", events: heard(because(zamok.LostBroken, lost(40)))},
		{what: "held for the longest time", events: []event{{
			Op: history.Try, Kind: history.Mutex, Name: "n", Proc: "pa", Lease: "a", Call: 1, Return: 2, Outcome: history.OK, Fence: 1, Until: 40, TTL: 100, Most: 40,
		}, because(zamok.LostMaxHold, lost(36))}},
		{what: "said to be held for the longest time", events: heard(because(zamok.LostMaxHold, lost(96))), want: wrong},
	})
}

func TestTold(t *testing.T) {
	wrong := []Property{Told}
	look := func(lease string, at, u int64) event { return until(u, of(lease, history.Look, at, at+1, history.OK)) }
	ended := func(at int64, o history.Outcome) event { return of("a", history.Ended, at, at, o) }
	asked := func(ttl int64, e event) event { e.TTL = ttl; return e }
	lively := func(events ...event) []event { // its process does much, and ends other contexts
		return append(append(events, inLease("other", of("a", history.Ended, 1, 1, history.OK))), alive("a", 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110)...)
	}
	scenes(t, []scene{
		{what: "said to hold after its deadline", events: []event{take("a", 1, 2, 1, 50), look("a", 70, 50), freed("a", 98, 99)}, want: []Property{Told}},
		{what: "granted for as long as it was asked for", events: []event{asked(50, take("a", 1, 2, 1, 52)), freed("a", 10, 11)}},
		{what: "granted for longer", events: []event{asked(50, take("a", 1, 2, 1, 1000)), freed("a", 10, 11)}, want: wrong},
		{what: "granted for longer by a clock that was set back", events: []event{asked(50, take("a", 1, 2, 1, 1000)), freed("a", 10, 11)}, faults: []history.Fault{{Harms: history.Stalls, From: 0, Till: 50}}},
		{what: "a context that ended by release", events: lively(take("a", 1, 2, 1, 50), freed("a", 20, 21), ended(21, history.OK))},
		{what: "a context that ended after a loss", events: lively(take("a", 1, 2, 1, 50), of("a", history.Look, 46, 47, history.Lost), ended(47, history.Lost))},
		{what: "a context that never ended", events: lively(take("a", 1, 2, 1, 50), of("a", history.Look, 46, 47, history.Lost)), want: wrong},
		{what: "a context that ended late", events: lively(take("a", 1, 2, 1, 50), of("a", history.Look, 46, 47, history.Lost), ended(200, history.Lost)), want: wrong},
		{what: "a context that ended late, in a process that stood still", events: append(lively(take("a", 1, 2, 1, 50), of("a", history.Look, 46, 47, history.Lost), ended(100, history.Lost)), alive("b", 70, 71, 72, 73)...)},
		{what: "a context that never ended after a release", events: lively(take("a", 1, 2, 1, 50), freed("a", 20, 21)), want: wrong},
		{what: "a context of a process that was killed", events: lively(take("a", 1, 2, 1, 50), of("a", history.Look, 46, 47, history.Lost)), faults: []history.Fault{killed("pa", 300)}},
		{what: "a process that tells of no context", events: append(alive("a", 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110), take("a", 1, 2, 1, 50), of("a", history.Look, 46, 47, history.Lost))},
	})
}

// Two holders are expected in these. That the older one learns of it late is not.
func TestToldOfAnother(t *testing.T) {
	for _, s := range []struct {
		what          string
		seen, release int64
		answers       []int64
		want          bool
	}{
		{"soon", 40, 90, []int64{55, 58, 61, 65, 70}, false},
		{"late", 80, 90, []int64{55, 58, 61, 65, 70}, true},
		{"late, and the server did not answer it", 80, 90, nil, false},
		{"late, and the other may have lost it", 80, 40, []int64{55, 58, 61, 65, 70}, false},
	} {
		a := take("a", 1, 2, 1, 92) // its TTL is 90, and a third of that 30
		h := &history.History{Events: append(alive("a", s.answers...), a, take("b", 3, 20, 2, 200), freed("b", s.release, s.release+1),
			until(92, of("a", history.Look, s.seen, s.seen+1, history.OK)), of("a", history.Look, 84, 85, history.Lost))}
		for i := range h.Events {
			h.Events[i].ID = int64(i) + 1
		}
		h.Sort()
		r := new(Report)
		r.exclusion(h, findHolds(findLives(h)), limits)
		var told bool
		for _, v := range r.Violations {
			told = told || v.Property == Told
		}
		if told != s.want {
			t.Errorf("%s: %v, want %v: %s", s.what, told, s.want, fmt.Sprint(r.Violations))
		}
	}
}

func TestRefusals(t *testing.T) {
	wrong := []Property{Refusal}
	try := func(lease string, call, ret int64, o history.Outcome) event {
		return event{Op: history.Try, Kind: history.Mutex, Name: "n", Proc: "p" + lease, Call: call, Return: ret, Outcome: o, TTL: 40}
	}
	held := func(call int64) event { return try("x", call, call+1, history.Held) }
	fault := []history.Fault{{Harms: history.Deafens, From: 1, Till: 2}}
	r, w := history.Reader, history.Writer
	scenes(t, []scene{
		{what: "held by nobody", events: []event{held(5)}, want: wrong},
		{what: "held", events: []event{take("a", 1, 2, 1, 50), held(5), freed("a", 10, 11)}},
		{what: "held by nobody any more", events: []event{take("a", 1, 2, 1, 50), freed("a", 10, 11), held(20)}, want: wrong},
		{what: "held by one whose release may not have come", events: []event{take("a", 1, 2, 1, 50), ends(history.Unknown, freed("a", 10, 18)), held(40)}},
		{what: "held by one who died", events: []event{take("a", 1, 2, 1, 50), held(40)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "held by nobody any more, after a fault", events: []event{held(5)}, faults: fault},
		{what: "held by one who may have been granted it", events: []event{try("a", 1, 9, history.Unknown), held(40)}},
		{what: "held while one is waiting", events: []event{take("a", 1, 30, 1, 50), held(5), freed("a", 31, 32)}},
		{what: "held with others who were told the same", events: []event{held(5), try("y", 40, 41, history.Held)}, want: wrong},
		{what: "held by the rest of one that was released", events: []event{func() event { e := take("a", 1, 2, 1, 50); e.Least = 40; return e }(), freed("a", 5, 6), held(30)}},
		{what: "one permit of two", events: []event{permits(2, doing(history.Try, take("a", 1, 2, 1, 50))), permits(2, held(5)), freed("a", 10, 11)}, want: wrong},
		{what: "two permits of two", events: []event{permits(2, doing(history.Try, take("a", 1, 2, 1, 50))), permits(2, doing(history.Try, take("b", 1, 2, 2, 50))), permits(2, held(5)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "a reader beside a reader", events: []event{as(r, doing(history.Try, take("a", 1, 2, 1, 50))), as(r, held(5)), freed("a", 10, 11)}, want: wrong},
		{what: "a writer beside a reader", events: []event{as(r, doing(history.Try, take("a", 1, 2, 1, 50))), as(w, held(5)), freed("a", 10, 11)}},
		{what: "failed at once", events: []event{try("x", 5, 6, history.Unknown)}, want: wrong},
		{what: "refused at once", events: []event{try("x", 5, 6, history.Refused)}, want: wrong},
		{what: "failed at once, after a fault", events: []event{try("x", 5, 6, history.Unknown)}, faults: fault},
		{what: "failed after a while", events: []event{try("x", 5, 20, history.Unknown)}},
	})
}
