package inspect

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// mostWaits is how many waits of one client, those that last longest, are taken
// for possible parts of a deadlock when it is not known under which lease they are;
// mostStarts from how many locks that hang together a shortest circle is looked
// for. Both only bound the time, where thousands wait for each other.
const (
	mostWaits  = 1000
	mostStarts = 1000
)

// untold: a process says within a second or so under what it waits. Until then
// nothing follows from its saying nothing.
const untold = 2 * time.Second

// graph has an edge from a lock to each for which one of its holders waits. Its nodes
// are the locks that somebody holds and somebody waits for, in the order of their
// titles: no other can be part of a circle.
type graph struct {
	locks []*Lock
	sure  [][]edge
	loose [][]edge // known to be under a lease, beside which others of the semaphore are held
	// oldest are, of each lock, its holders, of each client the one that has it longest.
	oldest [][]int
	// maybe are the waits of each client of which it is not known under what they
	// are, the longest first. The edges that follow from them, from every lock of
	// that client, are not kept: there may be millions.
	maybe map[string][]maybeWait
}

// edge: a holder of from stands in the queue of to, as its waiter of that index.
type edge struct {
	from, holder, to, waiter int
	sure                     bool
}

type maybeWait struct {
	to, waiter int
	waited     time.Duration
}

// place is a holder among those of a node.
type place struct{ node, holder int }

func newGraph(locks []Lock) *graph {
	g := &graph{maybe: map[string][]maybeWait{}}
	for n := range locks {
		l := &locks[n]
		waitedFor := slices.ContainsFunc(l.Waiters, func(w Waiter) bool { return w.Alive && w.Holder.Client != "" })
		if waitedFor && slices.ContainsFunc(l.Holders, Holder.works) {
			g.locks = append(g.locks, l)
		}
	}
	slices.SortStableFunc(g.locks, func(a, b *Lock) int {
		return cmp.Or(strings.Compare(a.Title(), b.Title()), strings.Compare(a.Key, b.Key))
	})
	g.locks = slices.CompactFunc(g.locks, func(a, b *Lock) bool { return a.Title() == b.Title() && a.Key == b.Key })
	holds := make(map[string]place, len(g.locks)) // by token
	g.oldest = make([][]int, len(g.locks))
	for n, l := range g.locks {
		known := map[string]bool{}
		for h := range l.Holders { // the oldest come first
			holder := &l.Holders[h]
			if !holder.works() {
				continue
			}
			holds[holder.Token] = place{n, h}
			if !known[holder.Client] {
				known[holder.Client] = true
				g.oldest[n] = append(g.oldest[n], h)
			}
		}
	}
	g.sure, g.loose = make([][]edge, len(g.locks)), make([][]edge, len(g.locks))
	for to, l := range g.locks {
		for n := range l.Waiters {
			g.add(to, n, holds)
		}
	}
	for client, waits := range g.maybe {
		slices.SortStableFunc(waits, func(a, b maybeWait) int { return cmp.Compare(b.waited, a.waited) })
		g.maybe[client] = waits[:min(len(waits), mostWaits)]
	}
	return g
}

// works says whether it is a client of ours that goes on with something.
func (h Holder) works() bool { return h.Client != "" && !h.Resting }

// add takes in one waiter.
func (g *graph) add(to, n int, holds map[string]place) {
	w := &g.locks[to].Waiters[n]
	switch {
	case !w.Alive || w.Holder.Client == "":
	case len(w.Under) == 0 && w.Waited < untold:
	case len(w.Under) == 0:
		g.maybe[w.Holder.Client] = append(g.maybe[w.Holder.Client], maybeWait{to, n, w.Waited})
	default:
		for _, token := range w.Under {
			p, ok := holds[token]
			switch {
			case !ok:
			case g.replaceable(p.node):
				g.loose[p.node] = append(g.loose[p.node], edge{p.node, p.holder, to, n, false})
			default:
				g.sure[p.node] = append(g.sure[p.node], edge{p.node, p.holder, to, n, true})
			}
		}
	}
}

// replaceable says whether those who wait for a lock may go on without one of those
// who hold it.
func (g *graph) replaceable(n int) bool {
	l := g.locks[n]
	return l.Kind == KindSemaphore && l.Holding > 1
}

// from are the edges that leave a node.
func (g *graph) from(n int, sure bool) iter.Seq[edge] {
	return func(yield func(edge) bool) {
		for _, e := range g.sure[n] {
			if !yield(e) {
				return
			}
		}
		if sure {
			return
		}
		for _, e := range g.loose[n] {
			if !yield(e) {
				return
			}
		}
		l := g.locks[n]
		for _, h := range g.oldest[n] {
			for _, w := range g.maybe[l.Holders[h].Client] {
				// A holder that waits began to do so when it had the lease. Two
				// goroutines of one process that want one lock are no deadlock.
				if w.to != n && w.waited < l.Holders[h].Since && !yield(edge{n, h, w.to, w.waiter, false}) {
					return
				}
			}
		}
	}
}

// parts returns the sets of nodes of which each can be reached from each, and
// which have a circle, by Tarjan's algorithm; each set in order.
func (g *graph) parts(sure bool) [][]int {
	t := tarjan{g: g, sure: sure, index: make([]int, len(g.locks)), low: make([]int, len(g.locks)), on: make([]bool, len(g.locks))}
	for n := range g.locks {
		if t.index[n] == 0 {
			t.visit(n)
		}
	}
	return t.parts
}

type tarjan struct {
	g          *graph
	sure       bool
	count      int
	index, low []int // from 1
	on         []bool
	stack      []int
	parts      [][]int
}

func (t *tarjan) visit(n int) {
	t.count++
	t.index[n], t.low[n] = t.count, t.count
	t.stack, t.on[n] = append(t.stack, n), true
	self := false
	for e := range t.g.from(n, t.sure) {
		self = self || e.to == n
		switch {
		case t.index[e.to] == 0:
			t.visit(e.to)
			t.low[n] = min(t.low[n], t.low[e.to])
		case t.on[e.to]:
			t.low[n] = min(t.low[n], t.index[e.to])
		}
	}
	if t.low[n] < t.index[n] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != n {
		at--
	}
	part := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, m := range part {
		t.on[m] = false
	}
	if len(part) > 1 || self {
		slices.Sort(part)
		t.parts = append(t.parts, part)
	}
}

// search looks for the shortest of the circles within a part. Its slices are by
// node, made once: there may be many parts.
type search struct {
	g     *graph
	sure  bool
	part  []bool
	by    []edge // by which edge a node was reached first…
	round []int  // …in this round
	count int    // of rounds
}

func newSearch(g *graph, sure bool) *search {
	n := len(g.locks)
	return &search{g: g, sure: sure, part: make([]bool, n), by: make([]edge, n), round: make([]int, n)}
}

// circle returns a shortest one within a part, beginning at its smallest node: a
// circle that is found from a node is only taken if none as short was found from a
// smaller one.
func (s *search) circle(part []int) []edge {
	for _, n := range part {
		s.part[n] = true
	}
	var best []edge
	for _, start := range part[:min(len(part), mostStarts)] {
		if c := s.back(start, len(best)); c != nil {
			best = c
		}
		if len(best) == 1 {
			break
		}
	}
	for _, n := range part {
		s.part[n] = false
	}
	return best
}

// back is a shortest way from a node to itself, shorter than most; 0 is no limit.
// Nil when there is none.
func (s *search) back(start, most int) []edge {
	s.count++
	level := []int{start}
	for depth := 1; len(level) > 0 && (most == 0 || depth < most); depth++ {
		var next []int
		for _, n := range level {
			for e := range s.g.from(n, s.sure) {
				if e.to == start {
					return s.way(e)
				}
				if s.round[e.to] != s.count && s.part[e.to] {
					s.round[e.to], s.by[e.to] = s.count, e
					next = append(next, e.to)
				}
			}
		}
		level = next
	}
	return nil
}

// way is the way back from the edge that closes a circle.
func (s *search) way(last edge) []edge {
	way := []edge{last}
	for at := last.from; at != last.to; at = s.by[at].from {
		way = append(way, s.by[at])
	}
	slices.Reverse(way)
	return way
}
