package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok"
)

// Break asks the holder that l shows to end its lease, as Inspector.Break does, at all
// members that l could ask. It is asked when a majority has taken the question: each of
// these tells the holder, and raises its vote no more, so that the lease ends within
// Broken.Left whatever the holder does. Then the lock is free for whoever tries next, as
// after a release. Only where the holder's renewals reach none of these until a vote of
// theirs is over, and then that one, can it go on with one that was not asked: ask again.
//
// BreakConfig.Now is refused with a *zamok.ConfigError: what is taken from one member
// after the other is given back by the holder's renewals meanwhile, and a lease of a
// quorum ends within its quarantine in any case. The other errors are those of
// Inspector.Break; when fewer than a majority could be asked, the error wraps why, and
// the holder may have been told all the same: look, and break it again.
func (q *Quorum) Break(ctx context.Context, l QuorumLock, cfg *BreakConfig) (Broken, error) {
	if cfg == nil {
		cfg = &BreakConfig{}
	}
	if _, _, err := cfg.checked(); err != nil {
		return Broken{}, err
	}
	one, err := q.breakable(l, cfg)
	if err != nil {
		return Broken{}, err
	}
	said, errs := make([]Broken, len(q.in)), make([]error, len(q.in))
	q.each(func(n int) {
		if v := l.Votes[n]; !v.Votes() {
			errs[n] = cmp.Or(v.Err, fmt.Errorf("it has no vote: %s", v.State))
			return
		}
		said[n], errs[n] = q.in[n].Break(ctx, one, cfg)
	})
	return q.broken(l, said, errs)
}

// breakable is the lock as one that is broken at each of the members.
func (q *Quorum) breakable(l QuorumLock, cfg *BreakConfig) (Lock, error) {
	if cfg.Now {
		return Lock{}, &zamok.ConfigError{Field: "BreakConfig.Now", Err: errors.New("not on a quorum: its members cannot be told at one moment; ask, and the lease ends within its TTL")}
	}
	at := slices.IndexFunc(l.Votes, func(v Vote) bool { return v.Lock.Held && v.Lock.First().Token == l.Holder.Token })
	if l.Got == 0 || at < 0 || len(l.Votes) != len(q.in) {
		return Lock{}, &zamok.ConfigError{Field: "Lock", Err: fmt.Errorf("nobody holds %q, as far as these members know", l.Name)}
	}
	one := l.Votes[at].Lock
	one.Name = l.Name
	_, err := one.chosen(cfg.Token)
	return one, err
}

// broken is what the members say together of a break.
func (q *Quorum) broken(l QuorumLock, said []Broken, errs []error) (Broken, error) {
	var out Broken
	var lefts []time.Duration
	var late, unlisted []error
	var changed []*ChangedError
	for n, err := range errs {
		var c *ChangedError
		switch {
		case err == nil:
			if lefts = append(lefts, said[n].Left); len(lefts) == 1 {
				out = said[n]
			}
			unlisted = append(unlisted, said[n].AuditErr)
		case errors.As(err, &c):
			changed = append(changed, c)
		case errors.Is(err, ErrDeaf): // a foreign holder, to all of them
			return Broken{}, err
		default:
			late = append(late, fmt.Errorf("member %s: %w", q.names[n], err))
		}
	}
	switch need := q.Majority(); {
	case len(lefts) >= need:
		// The members that were not asked may raise their votes, so the lease lasts as long
		// as so many of the others have theirs that these are a majority with them.
		slices.Sort(lefts)
		slices.Reverse(lefts)
		out.AuditErr = errors.Join(unlisted...)
		out.Fence, out.Left = l.Holder.Fence, lefts[need-(len(errs)-len(lefts))-1]
		return out, nil
	case len(changed) > len(errs)-need:
		return Broken{}, q.changed(l, changed)
	default:
		return Broken{}, fmt.Errorf("inspect: lock %q: %d of %d members asked its holder to stop, and a majority is %d: %w", l.Name, len(lefts), len(errs), need, errors.Join(late...))
	}
}

// changed says who has the lock now, when a majority says so.
func (q *Quorum) changed(l QuorumLock, all []*ChangedError) error {
	votes := map[string]int{}
	for _, c := range all {
		if votes[c.Now.Token]++; votes[c.Now.Token] >= q.Majority() {
			return c
		}
	}
	return &ChangedError{Kind: KindLock, Name: l.Name}
}
