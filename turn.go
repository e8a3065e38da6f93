package zamok

import "time"

// A turn is the time for which the goroutines of one client pass a lease on among
// themselves: Config.HandOver at most, from when it came from the server. What must
// hold:
//
//  1. Two never have it: who passes it on has none any more, and its context has
//     ended, before the next one is told.
//  2. Nothing of the one before can act for the next, which has the same token: a
//     lease is not passed on while a call of its holder is under way or of unknown
//     outcome, nor when its token was shown to anybody.
//  3. Each has a fence of its own, of the block that was reserved for the token when
//     it was granted; when that is used up, the turn is over.
//  4. The next one has at least as good a lease as from the server: nearly all of what
//     was granted is left, and the TTL is its own. Its plan of renewal goes on.
//  5. The clock of this process decides, so that a pause of it ends the turn.

const (
	modeBlock = "W"  // how a writer stands in a queue who is to have a block of fences
	blockSize = 4096 // how many that are

	// mostAhead is how far the last block may reach into the future, in µs, when the
	// next one is asked for: fences are not to run ahead of the server's clock, on which
	// they rest when the counter is lost.
	mostAhead = 1000
)

// beginTurn notes a lease that came from the server. Its turn is counted from now and
// not from the request, nor from the grant that replicas had to have first: far from the
// server, or from these, it would be over before it began.
func (k *keeper) beginTurn(ln *line, l *Lease) {
	now := k.client.clock.now()
	if ln.lease != nil { // one that was lost, and whose holder has not released it
		ln.lease.line = nil
	}
	ln.lease, l.line = l, ln
	ln.over = min(now.add(k.client.cfg.HandOver), l.kept.add(-l.granted/100*95))
	ln.heard, ln.held, ln.why = now, nil, nil
	if ahead := l.lastFence() - ln.serverTime(now) - mostAhead; ln.at > 0 && ahead > 0 {
		k.blocksFrom = max(k.blocksFrom, now.add(time.Duration(ahead)*time.Microsecond))
	}
}

// open says whether the turn goes on at that instant, for one who wants the lock as s.
// mu is held.
func (ln *line) open(s *spec, now instant) bool {
	l := ln.lease
	return l != nil && l.state == held && now < ln.over && l.spare > 0 && !l.bound &&
		s.ttl == l.spec.ttl && l.granted <= s.ttl
}

// armTurn sets the timer that ends the turn. mu is held.
func (k *keeper) armTurn(ln *line) {
	if ln.armed != 0 && ln.armed <= ln.over {
		return // it arms again when it fires too early
	}
	ln.armed = ln.over
	wait := k.client.clock.until(ln.over)
	if ln.timer == nil {
		ln.timer = time.AfterFunc(wait, func() { k.turnOver(ln) })
	} else {
		ln.timer.Reset(wait)
	}
}

func (k *keeper) turnOver(ln *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ln.armed = 0
	if ln.first != nil { // else it is perhaps nobody's line any more
		k.look(ln)
	}
}

// shut tells all who wait in the line that the client is closed. mu is held.
func (ln *line) shut() {
	if ln.timer != nil {
		ln.timer.Stop()
	}
	for a := ln.first; a != nil; a = ln.first {
		ln.unlink(a)
		a.in.stage = told
		a.in.told <- shut
	}
}

// pass gives a lease, which is released by that, to the first who waits for it here;
// nil when it must go to the server. The caller ends its context and then tells the
// next one. mu is held.
func (k *keeper) pass(l *Lease, now instant) *attempt {
	ln := l.line
	if ln == nil || ln.first == nil || ln.front || k.closed || !ln.open(ln.first.s, now) ||
		l.calls > 0 || l.renewAt == never || l.renewal != nil {
		return nil
	}
	a := ln.first
	ln.unlink(a)
	a.in.stage = told
	next := a.in.lease
	next.token, next.queued, next.began = l.token, l.queued, now
	next.fence, next.spare = l.fence+1, l.spare-1
	next.longest = now.bound(next.spec.maxHold)
	next.keep(l.kept, l.granted)
	next.renewAt, next.line = l.renewAt, ln
	next.at, l.at = l.at, -1
	k.heap[next.at] = next
	k.reschedule(next)
	k.tokens[next.token] = next
	l.state, l.passedOn = released, true
	ln.lease, l.line = next, nil
	if next.spec != l.spec {
		k.changed()
	}
	if ln.first != nil && !ln.open(ln.first.s, now) { // that was the last fence, or the next one has another TTL
		k.look(ln)
	}
	return a
}

// use counts a call of the holder with the lease's token, which used ends; an error
// when the lease is over.
func (l *Lease) use() error {
	if err := l.Err(); err != nil {
		return err
	}
	k := &l.client.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := l.err(); err != nil {
		return err
	}
	l.calls++
	return nil
}

// used ends a call; sure says that it was answered, so that nothing of it can come.
func (l *Lease) used(sure bool) {
	k := &l.client.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.calls--; !sure {
		l.bind()
	}
}

// bind keeps the lease from being passed on. mu is held.
func (l *Lease) bind() {
	l.bound = true
	if l.line != nil {
		l.client.keeper.look(l.line)
	}
}
