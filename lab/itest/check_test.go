package itest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// hold is one time in which somebody believed to hold a lock: from the moment
// at which the call returned, to the moment before the release was called or
// the one at which the lease's context had ended.
type hold struct {
	who        string
	fence      int64
	from, till time.Time
	reads      bool // others who read may hold beside it
}

// history collects what holders of one name believed.
type history struct {
	room  int // how many may hold at a time; 0: one
	mu    sync.Mutex
	holds []hold
}

// held notes a hold and returns what ends it: a function to be called before the
// release. The end of the context ends it too.
func (h *history) held(who string, l *zamok.Lease) (end func()) {
	return h.note(hold{who: who, fence: l.Fence()}, l)
}

func (h *history) note(x hold, l *zamok.Lease) (end func()) {
	x.from = time.Now()
	var once sync.Once
	end = func() {
		once.Do(func() {
			x.till = time.Now()
			if d := l.Deadline(); d.Before(x.till) { // on a machine that has no time, later than its context ended
				x.till = d.Add(counted(d, x.till))
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.holds = append(h.holds, x)
		})
	}
	context.AfterFunc(l.Context(), end)
	return end
}

// check is the two checks that need no model: nobody believes to hold while
// another does, and whoever comes later has the larger fence. It returns the holds
// in the order in which they began.
func (h *history) check(t testing.TB) []hold {
	t.Helper()
	h.mu.Lock()
	holds := slices.Clone(h.holds)
	h.mu.Unlock()
	for _, problem := range problems(holds, max(h.room, 1)) {
		t.Error(problem)
	}
	slices.SortFunc(holds, func(a, b hold) int { return a.from.Compare(b.from) })
	return holds
}

// latest is the holds that end last, the last first: as many as may be at a time.
// When there are so many, no other may begin before the last of them has ended.
type latest []hold

func (l *latest) add(x hold, room int) {
	at, _ := slices.BinarySearchFunc(*l, x, func(a, b hold) int { return b.till.Compare(a.till) })
	*l = slices.Insert(*l, at, x)
	*l = (*l)[:min(len(*l), room)]
}

// problems looks at every hold once, in the order in which they began. It need only
// be compared with the latest ends before it, and its fence with the largest. With
// room for several there is no order of fences: who begins first may have been told
// last.
func problems(holds []hold, room int) []string {
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.fence, b.fence)) })
	var out []string
	var all, alone latest        // the ends of all, and of those who do not read
	var highest, highAlone int64 // and their largest fences
	for _, x := range holds {
		before, fence := all, highest
		if x.reads {
			before, fence = alone, highAlone
		}
		if len(before) == room && x.from.Before(before[room-1].till) {
			last := before[room-1]
			out = append(out, fmt.Sprintf("%d holders at once for %v: %s and %s", room+1, last.till.Sub(x.from), last.who, x.who))
		}
		if room == 1 && x.fence <= fence {
			out = append(out, fmt.Sprintf("the fence of %s, %d, is not larger than %d before it", x.who, x.fence, fence))
		}
		all.add(x, room)
		highest = max(highest, x.fence)
		if !x.reads {
			alone.add(x, room)
			highAlone = max(highAlone, x.fence)
		}
	}
	return out
}

// A checker that finds nothing must be shown to find something.
func TestCheckersHaveTeeth(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	in := func(who string, fence int64, from, till int) hold {
		return hold{who: who, fence: fence, from: at(from), till: at(till)}
	}
	reads := func(x hold) hold { x.reads = true; return x }
	for _, c := range []struct {
		name  string
		room  int
		holds []hold
		want  int
	}{
		{"in turn", 1, []hold{in("a", 1, 0, 10), in("b", 2, 10, 20)}, 0},
		{"overlap", 1, []hold{in("a", 1, 0, 10), in("b", 2, 9, 20)}, 1},
		{"within", 1, []hold{in("a", 1, 0, 30), in("b", 2, 5, 6), in("c", 3, 7, 8)}, 2},
		{"equal fences", 1, []hold{in("a", 1, 0, 10), in("b", 1, 10, 20)}, 1},
		{"noted in another order", 1, []hold{in("b", 2, 10, 20), in("a", 1, 0, 10)}, 0},
		{"older fence", 1, []hold{in("a", 2, 0, 10), in("b", 1, 10, 20)}, 1},
		{"readers together", 1, []hold{reads(in("a", 1, 0, 10)), reads(in("b", 1, 5, 20))}, 0},
		{"writer beside a reader", 1, []hold{reads(in("a", 1, 0, 10)), reads(in("b", 2, 0, 20)), in("c", 3, 10, 20)}, 1},
		{"reader beside a writer", 1, []hold{in("a", 1, 0, 10), reads(in("b", 2, 5, 20))}, 1},
		{"reader's fence is older than a writer's", 1, []hold{in("a", 2, 0, 10), reads(in("b", 1, 10, 20))}, 1},
		{"two of two", 2, []hold{in("a", 1, 0, 10), in("b", 2, 0, 20), in("c", 3, 10, 30)}, 0},
		{"three of two", 2, []hold{in("a", 1, 0, 10), in("b", 2, 0, 20), in("c", 3, 9, 30)}, 1},
	} {
		if got := problems(c.holds, c.room); len(got) != c.want {
			t.Errorf("%s: problems %q, want %d", c.name, got, c.want)
		}
	}
}
