package validate

import (
	"testing"

	"github.com/zamok-go/zamok/lab/fault/history"
)

func TestExclusion(t *testing.T) {
	both := []Property{Exclusion, Object}
	scenes(t, []scene{
		{what: "one after the other", events: []event{take("a", 1, 2, 1, 50), freed("a", 10, 12), take("b", 3, 11, 2, 60), freed("b", 20, 21)}},
		{what: "together", want: both, events: []event{take("a", 1, 2, 1, 50), freed("a", 12, 14), take("b", 3, 11, 2, 60), freed("b", 20, 21)}},
		{what: "after the deadline", events: []event{take("a", 1, 2, 1, 50), take("b", 3, 51, 2, 99), ends(history.Lost, freed("a", 60, 61))}},
		{what: "before the deadline", want: both, events: []event{take("a", 1, 2, 1, 50), take("b", 3, 49, 2, 99), ends(history.Lost, freed("a", 60, 61))}},
		{what: "before a deadline that was raised", want: both, events: []event{
			take("a", 1, 2, 1, 50), until(80, of("a", history.Look, 40, 41, history.OK)), take("b", 3, 60, 2, 99), ends(history.Lost, freed("a", 90, 91)),
		}},
		{what: "after the holder died", events: []event{take("a", 1, 2, 1, 50), take("b", 3, 55, 2, 99), freed("b", 60, 61)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "with a dead holder's lease", want: []Property{Object}, events: []event{take("a", 1, 2, 1, 50), take("b", 3, 20, 2, 99), freed("b", 60, 61)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "after a loss was told", want: []Property{Object, Kept}, events: []event{
			take("a", 1, 2, 1, 50), of("a", history.Renew, 10, 11, history.Lost), take("b", 12, 13, 2, 60), freed("b", 20, 21),
		}},
		{what: "given up before the deadline", events: []event{take("a", 1, 2, 1, 50), ends(history.Lost, freed("a", 45, 46)), take("b", 3, 51, 2, 99), freed("b", 60, 61)}},
		{what: "given up, and taken before the deadline", events: []event{take("a", 1, 2, 1, 50), ends(history.Lost, freed("a", 45, 46)), take("b", 3, 48, 2, 99), freed("b", 60, 61)}},
		{what: "lost long before the deadline", want: []Property{Object}, events: []event{take("a", 1, 2, 1, 50), ends(history.Lost, freed("a", 40, 45)), take("b", 47, 51, 2, 99), freed("b", 60, 61)}},
		{what: "a release that nobody heard", want: both, events: []event{
			take("a", 1, 2, 1, 50), {Op: history.Release, Name: "n", Proc: "pa", Lease: "a", Call: 30}, take("b", 3, 20, 2, 60), freed("b", 40, 41),
		}},
		{what: "a release that the server may have heard", events: []event{
			take("a", 1, 2, 1, 50), ends(history.Unknown, freed("a", 10, 15)), take("b", 3, 20, 2, 60), freed("b", 30, 31),
		}},
		{what: "detached and resumed", events: []event{
			take("a", 1, 2, 1, 50), of("a", history.Detach, 5, 6, history.OK), from("a", doing(history.Resume, take("b", 7, 8, 2, 60))), freed("b", 20, 21),
		}},
		{what: "resumed from another", want: []Property{Object}, events: []event{
			take("a", 1, 2, 1, 50), of("a", history.Detach, 5, 6, history.OK), from("x", doing(history.Resume, take("b", 7, 8, 2, 60))), freed("b", 20, 21),
		}},
	})
}

func TestExclusionOfThoseWhoShare(t *testing.T) {
	w, r := history.Writer, history.Reader
	both := []Property{Exclusion, Object}
	scenes(t, []scene{
		{what: "two readers", events: []event{as(r, take("a", 1, 2, 1, 50)), as(r, take("b", 3, 4, 2, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "a writer with a reader", want: both, events: []event{as(r, take("a", 1, 2, 1, 50)), as(w, take("b", 3, 4, 2, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "a reader with a writer", want: both, events: []event{as(w, take("a", 1, 2, 1, 50)), as(r, take("b", 3, 4, 2, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "a reader with a writer who became one", events: []event{
			as(w, take("a", 1, 2, 1, 50)), of("a", history.Downgrade, 3, 5, history.OK), as(r, take("b", 1, 4, 2, 50)), freed("a", 10, 11), freed("b", 10, 11),
		}},
		{what: "a writer with one who had become a reader", want: both, events: []event{
			as(w, take("a", 1, 2, 1, 50)), of("a", history.Downgrade, 3, 5, history.OK), as(w, take("b", 1, 6, 2, 50)), freed("a", 10, 11), freed("b", 10, 11),
		}},
		{what: "two permits of two", events: []event{permits(2, take("a", 1, 2, 1, 50)), permits(2, take("b", 3, 4, 2, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "three permits of two", want: both, events: []event{
			permits(2, take("a", 1, 2, 1, 50)), permits(2, take("b", 3, 4, 2, 50)), permits(2, take("c", 5, 6, 3, 50)), freed("a", 10, 11), freed("b", 10, 11), freed("c", 10, 11),
		}},
		{what: "a semaphore and a lock of one name", events: []event{permits(1, take("a", 1, 2, 1, 50)), take("b", 3, 4, 2, 50), freed("a", 10, 11), freed("b", 10, 11)}},
	})
}

// What was said of a lease and was not so shows without two holders at a time.
func TestObjectOfThoseWhoShare(t *testing.T) {
	w, r := history.Writer, history.Reader
	lost := func(lease string, call, ret int64) event { return ends(history.Lost, freed(lease, call, ret)) }
	wrong := []Property{Object}
	scenes(t, []scene{
		{what: "a reader's lease that was gone", want: wrong, events: []event{as(r, take("a", 1, 2, 1, 50)), as(r, take("b", 3, 4, 2, 50)), lost("a", 10, 11), freed("b", 10, 11)}},
		{what: "a reader's lease that was due", events: []event{as(r, take("a", 1, 2, 1, 50)), as(r, take("b", 3, 4, 2, 50)), lost("a", 60, 61), freed("b", 10, 11)}},
		{what: "a writer's lease that was gone", want: wrong, events: []event{as(w, take("a", 1, 2, 1, 50)), lost("a", 10, 11)}},
		{what: "a writer after a reader who died", want: wrong, events: []event{as(r, take("a", 1, 2, 1, 50)), as(w, take("b", 3, 20, 2, 60)), freed("b", 30, 31)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "a writer after a reader who died, when that is due", events: []event{as(r, take("a", 1, 2, 1, 50)), as(w, take("b", 3, 51, 2, 90)), freed("b", 60, 61)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "a reader after a reader who died", events: []event{as(r, take("a", 1, 2, 1, 50)), as(r, take("b", 3, 20, 2, 60)), freed("b", 30, 31)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "a reader after a writer who died", want: wrong, events: []event{as(w, take("a", 1, 2, 1, 50)), as(r, take("b", 3, 20, 2, 60)), freed("b", 30, 31)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "a reader beside a writer who may have become one", events: []event{
			as(w, take("a", 1, 2, 1, 50)), of("a", history.Downgrade, 3, 8, history.Unknown), as(r, take("b", 1, 10, 2, 50)), freed("b", 11, 12), freed("a", 13, 14),
		}},
		{what: "a writer beside one who may have become a reader", want: []Property{Exclusion, Object}, events: []event{
			as(w, take("a", 1, 2, 1, 50)), of("a", history.Downgrade, 3, 8, history.Unknown), until(50, of("a", history.Look, 20, 21, history.OK)), as(w, take("b", 1, 15, 2, 50)), freed("b", 30, 31), freed("a", 30, 31),
		}},
		{what: "a writer who became a reader without a lease", want: wrong, events: []event{
			as(w, take("a", 1, 2, 1, 50)), freed("a", 3, 4), of("a", history.Downgrade, 5, 6, history.OK),
		}},
		{what: "a reader's lease that was told lost, and taken by a writer", want: []Property{Object, Kept}, events: []event{
			as(r, take("a", 1, 2, 1, 100)), as(w, take("b", 5, 20, 2, 100)), of("a", history.Look, 40, 41, history.Lost), ends(history.Lost, freed("a", 42, 43)), freed("b", 50, 51),
		}},
		{what: "a permit that was told lost, and taken by another", want: []Property{Object, Kept}, events: []event{
			permits(1, take("a", 1, 2, 1, 100)), permits(1, take("b", 5, 20, 2, 100)), of("a", history.Look, 40, 41, history.Lost), ends(history.Lost, freed("a", 42, 43)), freed("b", 50, 51),
		}},
		{what: "a permit that was gone", want: wrong, events: []event{permits(2, take("a", 1, 2, 1, 50)), permits(2, take("b", 3, 4, 2, 50)), lost("a", 10, 11), freed("b", 10, 11)}},
		{what: "a dead holder's permit", want: wrong, events: []event{permits(1, take("a", 1, 2, 1, 50)), permits(1, take("b", 3, 20, 2, 50)), freed("b", 30, 31)}, faults: []history.Fault{killed("pa", 5)}},
		{what: "a dead holder's permit, when it is due", events: []event{permits(1, take("a", 1, 2, 1, 50)), permits(1, take("b", 3, 51, 2, 90)), freed("b", 60, 61)}, faults: []history.Fault{killed("pa", 5)}},
	})
}

func TestFences(t *testing.T) {
	r, wrong := history.Reader, []Property{Fences, Object}
	scenes(t, []scene{
		{what: "asked while the other was under way", events: []event{permits(2, take("a", 1, 5, 2, 50)), permits(2, take("b", 4, 6, 1, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "asked afterwards", want: wrong, events: []event{permits(2, take("a", 1, 5, 2, 50)), permits(2, take("b", 6, 7, 1, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "the same twice", want: wrong, events: []event{permits(2, take("a", 1, 5, 2, 50)), permits(2, take("b", 4, 6, 2, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "two readers", events: []event{as(r, take("a", 1, 2, 7, 50)), as(r, take("b", 3, 4, 7, 50)), freed("a", 10, 11), freed("b", 10, 11)}},
		{what: "a reader after a writer", want: wrong, events: []event{as(history.Writer, take("a", 1, 2, 7, 50)), freed("a", 3, 4), as(r, take("b", 5, 6, 7, 50)), freed("b", 10, 11)}},
		{what: "a writer after a reader", want: wrong, events: []event{as(r, take("a", 1, 2, 7, 50)), freed("a", 3, 4), as(history.Writer, take("b", 5, 6, 6, 50)), freed("b", 10, 11)}},
		{what: "in the order of holds, though both were under way", want: []Property{Object}, events: []event{take("a", 1, 5, 2, 50), freed("a", 6, 7), take("b", 4, 8, 1, 50), freed("b", 10, 11)}},
	})
}

func TestOrder(t *testing.T) {
	first := []event{take("x", 1, 2, 1, 99), freed("x", 30, 31)}
	scene1 := func(fenceA, fenceB int64, faults ...history.Fault) scene {
		a, b := queued(10, take("a", 5, 40, fenceA, 99)), take("b", 15, 40, fenceB, 99)
		if fenceB < fenceA {
			a.Return, b.Return = 60, 40
		} else {
			a.Return, b.Return = 40, 60
		}
		return scene{events: append([]event{a, b, freed("a", a.Return+10, a.Return+15), freed("b", b.Return+10, b.Return+15)}, first...), faults: faults}
	}
	with := func(s scene, what string, want ...Property) scene { s.what, s.want = what, want; return s }
	scenes(t, []scene{
		with(scene1(2, 3), "in order"),
		with(scene1(3, 2), "overtaken", Order),
		with(scene1(3, 2, history.Fault{Harms: history.Deafens, From: 1, Till: 2}), "overtaken while it was deaf"),
		with(scene1(3, 2, history.Fault{Harms: history.Deafens, From: 35, Till: 36}), "overtaken by one that was deaf no more"),
		with(scene1(3, 2, history.Fault{Harms: history.Stalls, From: 1, Till: 20}), "overtaken while something else was wrong", Order),
		with(scene1(3, 2, history.Fault{Harms: history.Deafens, From: -20, Till: -10}), "overtaken when it had long recovered", Order),
		with(scene1(3, 2, history.Fault{Stops: "pa", From: 20, Till: 25}), "overtaken while it stood still"),
		with(scene1(3, 2, history.Fault{Stops: "px", From: 20, Till: 25}), "overtaken while another stood still", Order),
	})
}

// Those who share are served in turn too, and who gives up was not served first.
func TestOrderOfAllKinds(t *testing.T) {
	r, w := history.Reader, history.Writer
	wrong := []Property{Order}
	passed := func(e event) event { e.Passed = true; return e }
	// b asks when a stands in the queue, and is granted first.
	late := func(a, b func(event) event) []event {
		return []event{a(queued(10, take("a", 5, 60, 3, 99))), b(take("b", 15, 40, 2, 99)), freed("b", 41, 42), freed("a", 70, 75)}
	}
	with := func(k history.Kind) func(event) event { return func(e event) event { return as(k, e) } }
	permit := func(e event) event { return permits(1, e) }
	gaveUp := func(call, at int64) event {
		return ends(history.Cancelled, inLease("", queued(10, take("a", call, at, 0, 0))))
	}
	scenes(t, []scene{
		{what: "a permit before another", events: late(permit, permit), want: wrong},
		{what: "a reader before a writer", events: late(with(w), with(r)), want: wrong},
		{what: "a writer before a reader", events: late(with(r), with(w)), want: wrong},
		{what: "a reader before another", events: late(with(r), with(r))},
		{what: "passed on within a client", events: late(with(history.Mutex), passed)},
		{what: "before one who gave up", events: []event{gaveUp(5, 51), take("b", 15, 40, 2, 99), freed("b", 45, 46)}, want: wrong},
		{what: "as one gave up", events: []event{gaveUp(5, 50), take("b", 15, 40, 2, 99), freed("b", 45, 46)}},
		{what: "before one who asked later", events: []event{gaveUp(5, 51), take("b", 9, 40, 2, 99), freed("b", 45, 46)}},
	})
}
