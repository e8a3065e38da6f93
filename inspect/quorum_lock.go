package inspect

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/zamok-go/zamok"
)

// QuorumState is what the members say together of a lock.
type QuorumState string

// The states.
const (
	QuorumHeld    QuorumState = "held"    // a majority has given its votes to one holder
	QuorumFree    QuorumState = "free"    // nobody has a majority; some may have given their votes to somebody who tries
	QuorumUnknown QuorumState = "unknown" // it depends on members that cannot be asked
)

// QuorumLock is one lock as the members of a quorum saw it, each at a moment of its own.
type QuorumLock struct {
	Name  string
	Key   string // on each of the servers
	State QuorumState

	// Holder is who has it, when it is QuorumHeld, or who may have it, when it is
	// QuorumUnknown; Holder.Left is the time until it has no majority any more if
	// nothing is renewed. Holder.Fence is what a majority calls its fence: 0 when they
	// do not agree, which means that its owner has not got it yet. NoTTL: a foreign
	// program took it at a majority, and it never ends.
	Holder Holder
	Got    int // how many members have given it their votes
	NoTTL  bool

	// Serving is how many members grant locks now. When they are no majority, nobody can
	// be granted anything.
	Serving  int
	Majority int
	Votes    []Vote   // of all members, in the order of NewQuorum
	Waiters  []Waiter // of all members, each once, who came first before others
}

// Vote is what one member says of a lock: who has its vote is Lock.First.
type Vote struct {
	Member
	Lock Lock
}

// Show looks at one lock at all members, and asks who its holder and its waiters are.
// The error is a *zamok.ConfigError for a bad name. What cannot be had of a member is in
// its Vote.
func (q *Quorum) Show(ctx context.Context, name string) (QuorumLock, error) {
	return q.show(ctx, "name", name, q.in[0].lockHead()+name)
}

// ShowKey is Show for a lock with a MutexConfig.Key, of which key is that key.
func (q *Quorum) ShowKey(ctx context.Context, key string) (QuorumLock, error) {
	return q.show(ctx, "key", key, key)
}

func (q *Quorum) show(ctx context.Context, field, name, key string) (QuorumLock, error) {
	set, err := q.in[0].set(name, key)
	if err != nil {
		return QuorumLock{}, &zamok.ConfigError{Field: field, Err: err}
	}
	locks, all := make([]Lock, len(q.in)), make([]Member, len(q.in))
	q.each(func(n int) { // one that hangs keeps none of the others from being asked all
		if all[n] = q.member(ctx, n); !all[n].Votes() {
			return
		}
		var err error
		if locks[n], err = q.in[n].show(ctx, field, name, key); err != nil {
			all[n].State, all[n].Err = MemberUnreachable, err
		}
	})
	l := QuorumLock{Name: name, Key: set.Lock, Majority: q.Majority()}
	for n, m := range all {
		v := Vote{m, locks[n]}
		if v.compare(all[:n]); !v.Votes() {
			v.Lock = Lock{}
		}
		l.Votes = append(l.Votes, v)
	}
	l.count()
	return l, nil
}

// count makes one of what the members say.
func (l *QuorumLock) count() {
	votes := map[string][]Lock{}
	best, silent := "", 0
	for _, v := range l.Votes {
		switch {
		case v.State == MemberUnreachable:
			silent++
		case v.Lock.Held:
			t := v.Lock.First().Token
			if votes[t] = append(votes[t], v.Lock); len(votes[t]) > len(votes[best]) {
				best = t
			}
		}
		if v.State == MemberServes {
			l.Serving++
		}
		l.Waiters = append(l.Waiters, v.Lock.Waiters...)
	}
	l.line()
	switch l.Got = len(votes[best]); {
	case l.Got >= l.Majority:
		l.State = QuorumHeld
	case l.Got+silent >= l.Majority:
		l.State = QuorumUnknown
	default:
		l.State, l.Got = QuorumFree, 0
	}
	if l.Got > 0 {
		l.holder(votes[best])
	}
}

// line puts the waiters in their order. Each stands at one member, and at another when
// that one was lost.
func (l *QuorumLock) line() {
	slices.SortStableFunc(l.Waiters, func(a, b Waiter) int { return cmp.Compare(b.Waited, a.Waited) })
	seen := map[string]bool{}
	l.Waiters = slices.DeleteFunc(l.Waiters, func(w Waiter) bool {
		known := seen[w.Holder.Token]
		seen[w.Holder.Token] = true
		return known
	})
	for n := range l.Waiters {
		l.Waiters[n].Place = n + 1
	}
}

// holder is what the members say together of who has these votes.
func (l *QuorumLock) holder(votes []Lock) {
	const endless = time.Duration(math.MaxInt64)
	enough := min(l.Majority, len(votes))
	ends, fences, fence := []time.Duration{}, map[int64]int{}, int64(0)
	for _, v := range votes {
		h, broken := v.First(), l.Holder.Broken
		if l.Holder.Token == "" || l.Holder.Service == "" && h.Service != "" { // some members may know more of it
			l.Holder = h
		}
		l.Holder.Broken = cmp.Or(broken, h.Broken)
		if fences[h.Fence]++; fences[h.Fence] >= enough {
			fence = h.Fence
		}
		if ends = append(ends, v.Left); v.NoTTL {
			ends[len(ends)-1] = endless
		}
	}
	slices.Sort(ends)
	l.Holder.Fence, l.Holder.Left = fence, ends[len(ends)-enough]
	if l.Holder.Left == endless {
		l.NoTTL, l.Holder.Left = true, 0
	}
}
