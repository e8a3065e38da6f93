package itest

import (
	"cmp"
	"context"
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
}

// history collects what holders of one lock believed.
type history struct {
	mu    sync.Mutex
	holds []hold
}

// held notes a hold and returns what ends it: a function to be called before the
// release. The end of the context ends it too.
func (h *history) held(who string, l *zamok.Lease) (end func()) {
	from := time.Now()
	var once sync.Once
	end = func() {
		once.Do(func() {
			till := time.Now()
			h.mu.Lock()
			defer h.mu.Unlock()
			h.holds = append(h.holds, hold{who, l.Fence(), from, till})
		})
	}
	context.AfterFunc(l.Context(), end)
	return end
}

// check is the two checks that need no model: nobody believes to hold while
// another does, and whoever comes later has the larger fence.
func (h *history) check(t testing.TB) []hold {
	t.Helper()
	h.mu.Lock()
	holds := slices.Clone(h.holds)
	h.mu.Unlock()
	for _, problem := range problems(holds) {
		t.Error(problem)
	}
	slices.SortFunc(holds, func(a, b hold) int { return a.from.Compare(b.from) })
	return holds
}

// problems is O(n log n): in the order in which they began, every hold need
// only be compared with the latest end before it, and its fence with the
// largest.
func problems(holds []hold) []string {
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.fence, b.fence)) })
	var out []string
	var last hold
	for i, x := range holds {
		if i > 0 {
			if x.from.Before(last.till) {
				out = append(out, "two holders at once for "+last.till.Sub(x.from).String()+": "+last.who+" and "+x.who)
			}
			if x.fence <= last.fence {
				out = append(out, "the fence of "+x.who+" is not larger than that of "+last.who+" before it")
			}
		}
		if x.till.After(last.till) {
			last.till, last.who = x.till, x.who
		}
		last.fence = max(last.fence, x.fence)
	}
	return out
}

// A checker that finds nothing must be shown to find something.
func TestCheckersHaveTeeth(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, c := range []struct {
		name  string
		holds []hold
		want  int
	}{
		{"in turn", []hold{{"a", 1, at(0), at(10)}, {"b", 2, at(10), at(20)}}, 0},
		{"overlap", []hold{{"a", 1, at(0), at(10)}, {"b", 2, at(9), at(20)}}, 1},
		{"within", []hold{{"a", 1, at(0), at(30)}, {"b", 2, at(5), at(6)}, {"c", 3, at(7), at(8)}}, 2},
		{"equal fences", []hold{{"a", 1, at(0), at(10)}, {"b", 1, at(10), at(20)}}, 1},
		{"noted in another order", []hold{{"b", 2, at(10), at(20)}, {"a", 1, at(0), at(10)}}, 0},
		{"older fence", []hold{{"a", 2, at(0), at(10)}, {"b", 1, at(10), at(20)}}, 1},
	} {
		if got := problems(c.holds); len(got) != c.want {
			t.Errorf("%s: problems %q, want %d", c.name, got, c.want)
		}
	}
}
