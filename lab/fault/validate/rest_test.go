package validate

import (
	"testing"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

func TestLiveness(t *testing.T) {
	last := func(call, ret int64) event { return take("z", call, ret, 99, ret+50) }
	held := func(ret int64) []event {
		return []event{take("a", 1, 2, 1, 500), freed("a", 190, 200), last(10, ret), freed("z", ret+1, ret+2)}
	}
	stalled := []Property{Liveness}
	for _, s := range []struct {
		scene
		longest, orphan time.Duration
	}{
		{scene{what: "at once", events: held(210)}, 10, 0},
		{scene{what: "as late as may be", events: held(300)}, 100, 0},
		{scene{what: "too late", events: held(301), want: stalled}, 101, 0},
		{scene{what: "wanted by one who died", events: []event{{Op: history.Acquire, Kind: history.Mutex, Name: "n", Proc: "pq", Call: 5}}, faults: []history.Fault{killed("pq", 600)}, want: stalled}, 595, 0},
		{scene{what: "wanted by one who died soon", events: []event{{Op: history.Acquire, Kind: history.Mutex, Name: "n", Proc: "pq", Call: 5}}, faults: []history.Fault{killed("pq", 60)}}, 55, 0},
		{scene{what: "free while a fault lasted", events: held(310), faults: []history.Fault{{Harms: history.Stalls, From: 205, Till: 250}}}, 50, 0},
		{scene{what: "free while another kind of fault lasted", events: held(310), faults: []history.Fault{{Harms: history.Deafens, From: 205, Till: 250}}, want: stalled}, 110, 0},
		{scene{what: "free while a fault lasts for ever", events: held(900), faults: []history.Fault{{Harms: history.Stalls, From: 205}}}, 5, 0},
		{scene{what: "wanted by one who stands still", events: held(310), faults: []history.Fault{{Stops: "pz", From: 220, Till: 300}}}, 20, 0},
		{scene{what: "after a crash", events: []event{take("a", 1, 2, 1, 90), last(10, 95), freed("z", 96, 97)}, faults: []history.Fault{killed("pa", 20)}}, 75, 75},
		{scene{what: "long after a crash", events: []event{take("a", 1, 2, 1, 90), last(10, 125), freed("z", 126, 127)}, faults: []history.Fault{killed("pa", 20)}, want: stalled}, 105, 105},
		{scene{what: "a permit that nobody took", want: stalled, events: []event{
			permits(2, take("a", 1, 2, 1, 500)), freed("a", 190, 200), permits(2, last(10, 150)), freed("z", 300, 301),
		}}, 140, 0},
		{scene{what: "all permits taken", events: []event{
			permits(1, take("a", 1, 2, 1, 500)), freed("a", 190, 200), permits(1, last(10, 201)), freed("z", 300, 301),
		}}, 8, 0},
	} {
		if r := s.check(t, limits); s.longest > 10 && (r.LongestStall != s.longest || r.LongestOrphan != s.orphan) {
			t.Errorf("%s: longest stall %d, orphan %d, want %d, %d", s.what, r.LongestStall, r.LongestOrphan, s.longest, s.orphan)
		}
	}
}

// A machine that stood still is no fault of the lock's.
func TestLivenessOfAMachineThatStoodStill(t *testing.T) {
	slow := limits
	slow.Stood = func(from, till int64) time.Duration { return time.Duration(max(0, min(till, 250)-max(from, 230))) }
	for _, s := range []struct {
		freed, taken int64
		want         []Property
	}{{200, 320, nil}, {200, 321, []Property{Liveness}}} {
		scene{what: "a machine that stood still for 20", want: s.want, events: []event{
			take("a", 1, 2, 1, 500), freed("a", 190, s.freed), take("z", 10, s.taken, 99, 500), freed("z", 400, 401),
		}}.check(t, slow)
	}
}

func TestResidue(t *testing.T) {
	key := func(name string, ttl int64) []event { return []event{{Op: history.Key, Name: name, TTL: ttl}} }
	left := []Property{Residue}
	const months = int64(100 * 24 * time.Hour)
	scenes(t, []scene{
		{what: "fence", events: key("zamok:fence:{000001}", -1)},
		{what: "limit", events: key("zamok:limit:{semaphore:s}", -1)},
		{what: "the test's own", events: key("reg:{1}", -1)},
		{what: "queue", events: key("zamok:queue:{lock:n}", 900)},
		{what: "queue for ever", events: key("zamok:queue:{lock:n}", -1), want: left},
		{what: "lock", events: key("lock:n", 900), want: left},
		{what: "lock for ever", events: key("lock:n", -1), want: left},
		{what: "permits", events: key("semaphore:n", 900), want: left},
		{what: "readers", events: key("zamok:readers:{lock:n}", 900), want: left},
		{what: "a queue for months", events: key("zamok:queue:{lock:n}", months), want: left},
		{what: "a call for months", events: key("zamok:call:{lock:n}:c", months), want: left},
		{what: "a client for months", events: key("zamok:proc:{all}:c", months), want: left},
		{what: "the server's process", events: key("zamok:node", -1)},
		{what: "a key of nobody's", events: key("zamok:node-of-somebody", 900), want: left},
	})
}

func TestOnce(t *testing.T) {
	giveUp := func(e event) event { return as(history.GiveUp, e) }
	wrong := []Property{Once}
	scenes(t, []scene{
		{what: "run once", events: []event{ran("p1", 2, 5, 50, 7), told(1, 6, 7), told(8, 9, 7)}},
		{what: "two outcomes", want: wrong, events: []event{ran("p1", 2, 5, 50, 7), ran("p2", 6, 7, 50, 8), told(1, 8, 7), told(1, 9, 8)}},
		{what: "an outcome that no run had", want: wrong, events: []event{ran("p1", 2, 5, 50, 7), told(1, 6, 8)}},
		{what: "an outcome of a run to come", want: wrong, events: []event{told(1, 6, 7), ran("p1", 8, 9, 50, 7)}},
		{what: "run when it was known", want: wrong, events: []event{ran("p1", 2, 5, 50, 7), told(1, 6, 7), ran("p2", 8, 9, 50, 8)}},
		{what: "again after a crash", events: []event{ran("p1", 2, 0, 50, 7), ran("p2", 10, 12, 60, 8), told(3, 13, 8)}, faults: []history.Fault{killed("p1", 5)}},
		{what: "again while it may go on", want: wrong, events: []event{ran("p1", 2, 0, 50, 7), ran("p2", 10, 12, 60, 8), told(3, 13, 8)}},
		{what: "again when its lease was over", events: []event{ran("p1", 2, 70, 50, 7), ran("p2", 55, 57, 90, 8), told(3, 58, 8)}},
		{what: "again after a run that succeeded", want: wrong, events: []event{ran("p1", 2, 5, 50, 7), ran("p2", 10, 12, 60, 8), told(3, 13, 8)}},
		{what: "again after a run that succeeded and could not say so", events: []event{ran("p1", 2, 5, 50, 7), ran("p2", 10, 12, 60, 8), told(3, 13, 8)}, faults: []history.Fault{{Harms: history.Stalls, From: 6, Till: 8}}},
		{what: "again after a run that succeeded in a process that died", events: []event{ran("p1", 2, 5, 50, 7), ran("p2", 10, 12, 60, 8), told(3, 13, 8)}, faults: []history.Fault{killed("p1", 6)}},
		{what: "run twice, under give up", want: wrong, events: []event{giveUp(ran("p1", 2, 0, 50, 7)), giveUp(ran("p2", 10, 12, 60, 8))}, faults: []history.Fault{killed("p1", 5)}},
	})
}

func TestRegisters(t *testing.T) {
	for kind, property := range map[history.Kind]Property{history.Guarded: Guarded, history.Outside: Outside} {
		w := func(call, ret, fence, value int64, o history.Outcome) event {
			return wrote(kind, call, ret, fence, value, o)
		}
		r := func(call, ret, fence, value int64) event { return saw(kind, call, ret, fence, value) }
		ok, lost, unknown := history.OK, history.Lost, history.Unknown
		stale := []Property{property}
		list := []scene{
			{what: "in order", events: []event{r(1, 2, 0, 0), w(3, 4, 5, 1, ok), r(5, 6, 5, 1), w(7, 8, 6, 2, ok), r(9, 10, 6, 2)}},
			{what: "stale", events: []event{w(3, 4, 6, 1, ok), w(5, 6, 5, 2, ok)}, want: stale},
			{what: "both under way", events: []event{w(3, 5, 6, 1, ok), w(4, 6, 5, 2, ok), r(7, 8, 6, 1)}},
			{what: "the older one last", events: []event{w(3, 5, 6, 1, ok), w(4, 6, 5, 2, ok), r(7, 8, 5, 2)}, want: stale},
			{what: "an old value", events: []event{w(3, 4, 5, 1, ok), w(5, 6, 6, 2, ok), r(7, 8, 5, 1)}, want: stale},
			{what: "a lost update", events: []event{w(3, 4, 5, 1, ok), r(5, 6, 0, 0)}, want: stale},
			{what: "unknown and not done", events: []event{w(3, 4, 7, 1, unknown), w(5, 6, 5, 2, ok), r(7, 8, 5, 2)}},
			{what: "unknown and done", events: []event{w(3, 4, 5, 1, unknown), r(7, 8, 5, 1)}},
			{what: "unknown, and done late", events: []event{w(3, 4, 5, 1, unknown), r(5, 6, 0, 0), r(7, 8, 5, 1)}},
			{what: "unknown, and done too late", events: []event{w(3, 4, 5, 1, unknown), w(5, 6, 6, 2, ok), r(7, 8, 5, 1)}, want: stale},
			{what: "pending and done", events: []event{w(3, 0, 5, 1, history.Pending), r(7, 8, 5, 1)}},
			{what: "refused and done", events: []event{w(2, 3, 6, 3, ok), w(3, 4, 5, 1, lost), r(7, 8, 5, 1)}, want: stale},
		}
		for _, s := range list {
			s.faults = []history.Fault{{Harms: history.Deafens, From: 1, Till: 2}} // or nothing had failed
			s.check(t, limits)
		}
	}
	twice := saw(history.Guarded, 3, 4, 5, 1)
	twice.Times = 2
	shared := func(call, ret, fence, value int64) event {
		return wrote(history.Shared, call, ret, fence, value, history.OK)
	}
	scenes(t, []scene{
		{what: "a script that ran twice", events: []event{wrote(history.Guarded, 1, 2, 5, 1, history.OK), twice}, want: []Property{Guarded}},
		{what: "those who share, in any order", events: []event{shared(1, 2, 6, 1), shared(3, 4, 5, 2), saw(history.Shared, 5, 6, 5, 2)}},
	})
	scenes(t, []scene{
		{what: "refused an older one", events: []event{wrote(history.Outside, 1, 2, 6, 1, history.OK), wrote(history.Outside, 3, 4, 5, 2, history.Lost)}},
		{what: "refused the newest", want: []Property{Outside}, events: []event{wrote(history.Outside, 1, 2, 5, 1, history.OK), wrote(history.Outside, 3, 4, 6, 2, history.Lost)}},
		{what: "refused the newest, whose fence is no larger", want: []Property{Fences, Object, Outside}, events: []event{
			permits(2, take("a", 1, 2, 5, 9)), inLease("a", wrote(history.Outside, 3, 4, 5, 1, history.OK)), freed("a", 5, 6),
			permits(2, take("b", 7, 8, 4, 99)), inLease("b", wrote(history.Outside, 9, 10, 4, 2, history.Lost)), freed("b", 11, 12),
		}},
		{what: "the same by a guarded script, when the lease is over", events: []event{wrote(history.Guarded, 1, 2, 5, 1, history.OK), wrote(history.Guarded, 3, 4, 6, 2, history.Lost)}},
	})
}
