package model

import "strconv"

// ending is why no more permits were given.
type ending int

const (
	allGiven ending = iota // none is free any more
	usedUp                 // the queue is
	stopped                // too many dead waiters for one call
)

// permits is a semaphore some of whose permits may be free.
type permits struct {
	*Store
	names // the lock is the semaphore
}

// grants is what grant did.
type grants struct {
	mine  string // the caller's fence, "" if it got none
	given int64
	end   ending
}

// grant gives so many free permits to the first waiters who are still there, of
// whom me, the caller, gets its whole ttl. An entry of one that has a permit
// already is dropped: some library came twice, with two entries. It gives none in
// quarantine.
func (p *permits) grant(me string, ttl, free int64) (g grants, err error) {
	if p.closed > 0 && free > 0 {
		return g, p.holdBack(p.names, me)
	}
	for g.given < free {
		w, to, err := p.nextHead(p.queue, me, "")
		switch {
		case err != nil:
			return g, err
		case to == toNobody:
			g.end = usedUp
			return g, nil
		case to == more:
			g.end = stopped
			return g, nil
		}
		ms := w.grant()
		if to == toMe {
			ms, w.inbox = ttl, "-" // it reads the reply
		}
		fence, err := p.give(w, ms)
		if err != nil {
			return g, err
		}
		if fence == "" {
			continue
		}
		g.given++
		if to == toMe {
			g.mine = fence
		}
	}
	return g, nil
}

// give makes the waiter one of those who hold a permit and returns its fence, ""
// when it holds one already.
func (p *permits) give(w waiter, ms int64) (fence string, err error) {
	if _, fence, err = p.nextFence(p.fence, w.token); err != nil {
		return "", err
	}
	added, err := p.ZAdd(p.lock, w.token, float64(p.ms+ms))
	if err != nil || !added {
		p.hit(GrantHasOne)
		return "", err
	}
	p.hit(GrantGiven)
	p.keep(p.lock)
	p.tellGrant(p.lock, w, fence, ms)
	return fence, nil
}

// keep lets a set of members last as long as the last of them.
func (s *Store) keep(key string) { s.PExpire(key, s.lastEnd(key)-s.ms) }

// tell tells the first who goes on waiting when the first of the permits ends.
func (p *permits) tell() error {
	ms := int64(1)
	if all, _ := p.ZRange(p.lock); len(all) > 0 {
		ms = int64(all[0].Score) - p.ms
	}
	return p.tellNext(p.names, strconv.FormatInt(ms, 10))
}
