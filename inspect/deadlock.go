package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
)

// Deadlock is a circle of leases each of whose holders waits for the next. It ends when
// one of them does: by the limit of a wait, by MutexConfig.MaxHold, by Break.
type Deadlock struct {
	// Members in the order of the circle, beginning with the smallest name: the
	// holder of each waits for the lock of the next, and that of the last for the
	// first's. A single one waits for itself.
	Members []DeadlockMember

	// Sure: each wait is known to be under the lease. Otherwise one at least is
	// only known to be of the client that has the lease, and began after it: it may
	// be of another goroutine, and then there is no deadlock.
	Sure bool
}

// DeadlockMember is one lock of the circle, and of those who have it the one that is
// part of it.
type DeadlockMember struct {
	Kind    Kind
	Name    string
	Key     string
	Holder  zamok.Holder
	Service string // of the holder
	Command string // of the holder
	Fence   int64
	Since   time.Duration

	// Waits is how the holder stands in the queue of the next member.
	Waits Waiter
	// Sure: it is known to wait there under this lease, and whoever waits for the lock
	// waits for this one.
	Sure bool
}

// Title is that of the lock: see Lock.Title.
func (m DeadlockMember) Title() string { return title(m.Kind, m.Name) }

// Deadlocks finds the circles among these locks, as View.Locks or Show return them;
// Check does so by itself. Where circles hang together one is returned, one of the
// shortest, and one that is sure if there is one. The order is that of the first
// members' names.
//
// A wait is known to be under a lease when the context that was given to Lock is
// that lease's or comes from it, or by zamok.Config.Under. Who waits with another
// context, in a process that holds leases, is taken for one who might hold any of
// these that is older than the wait, but not the very lock that it waits for. It must
// have waited for 2 s: before, its process need not have said under what it waits.
//
// Who waits for a lock that readers have waits for each of them, so one of them is
// enough for a circle; a reader who waits stands behind a writer who does. Who waits for
// a permit goes on when anybody gives one back: a circle through a semaphore is sure
// only when a single permit is held.
func Deadlocks(locks []Lock) []Deadlock {
	g := newGraph(locks)
	var found []Deadlock
	certain := make(map[int]bool) // nodes that stand in a sure circle, or hang together by such
	search := newSearch(g, true)
	for _, part := range g.parts(true) {
		found = append(found, g.deadlock(search.circle(part)))
		for _, n := range part {
			certain[n] = true
		}
	}
	search = newSearch(g, false)
	for _, part := range g.parts(false) {
		if !slices.ContainsFunc(part, func(n int) bool { return certain[n] }) {
			found = append(found, g.deadlock(search.circle(part)))
		}
	}
	slices.SortStableFunc(found, func(a, b Deadlock) int {
		return cmp.Or(strings.Compare(a.Members[0].Title(), b.Members[0].Title()), strings.Compare(a.Members[0].Key, b.Members[0].Key))
	})
	return found
}

// deadlock puts a circle in words.
func (g *graph) deadlock(circle []edge) Deadlock {
	d := Deadlock{Sure: true}
	for _, e := range circle {
		l, w := g.locks[e.from], g.locks[e.to].Waiters[e.waiter]
		h := l.Holders[e.holder]
		d.Members = append(d.Members, DeadlockMember{
			Kind: l.Kind, Name: l.Name, Key: l.Key, Holder: h.Holder, Service: h.Service, Command: h.Command, Fence: h.Fence, Since: h.Since,
			Waits: w, Sure: e.sure,
		})
		d.Sure = d.Sure && e.sure
	}
	return d
}
