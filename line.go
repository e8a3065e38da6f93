package zamok

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// line is those goroutines of one client who want one lock as its writers
// (Config.HandOver): one of them has it, perhaps, and the others wait in the order
// in which they came. It is there as long as there is anybody. It is guarded by
// keeper.mu, which nobody holds while waiting. What must hold:
//
//  1. At most one of them, the front, asks the server. The others wait here and send
//     nothing, and nobody is served before one of them who came first.
//  2. Who waits here waits for a lease whose turn is open (turn.go), or behind the
//     front. When there is neither, the first goes to the server at once; a timer
//     sees to it when the turn is over. So a lease that is lost, kept for long, given
//     away or forgotten stops nobody.
//  3. One who waits is told once: that it has a lease, that it is the front, or that
//     the server does not answer. Whoever goes away looks under mu whether it was
//     told, and gives back what it was told of.
//  4. The front presents at the server the ticket of its own arrival, so that waiting
//     here costs no place among the processes.
type line struct {
	key         string
	front       bool     // one of them is at the server
	first, last *attempt // who waits here
	lease       *Lease   // of the one who has the lock
	over        instant  // when the turn of that lease ends
	timer       *time.Timer
	armed       instant // when timer fires; 0 when it is not set

	// What the server said last to one of them.

	heard instant    // when it answered
	held  *HeldError // who had the lock then; nil when that was one of them, or nobody
	why   error      // the failure of a request after that
	sent  instant    // its clock was at when ours was sent, or later
	at    int64      // in µs; 0: it never answered
	ahead bool       // the tickets in the queue are ahead of that: it went back
}

// wentBack is how far ahead of the server's clock a ticket is, in µs, when the clock
// went back since. Those of one instant, and the error of our own, are less.
const wentBack = 1000000

// place is where an attempt is in its line.
type place struct {
	line       *line
	stage      stage
	prev, next *attempt
	told       chan news
	lease      *Lease // made ready, to be short under mu
}

type stage uint8

const (
	outside stage = iota
	waits         // here
	told          // …and is about to hear the news
	front         // at the server
)

type news uint8

const (
	passed   news = iota // place.lease has the lock
	promoted             // it is the front
	givenUp              // attempt.why says why
	shut                 // the client is closed
)

// inLine takes the lock as one of a line.
func (a *attempt) inLine(ctx context.Context) (lease *Lease, err error) {
	k := &a.c.keeper
	a.in.lease = a.c.prepare(ctx, a.s)
	if !k.join(a) {
		n, err := a.await(ctx)
		switch {
		case err != nil:
			return nil, err
		case n == passed:
			a.handed = true
			return a.in.lease, nil
		case n == givenUp:
			return nil, a.gaveUp()
		case n == shut:
			return nil, ErrClosed
		}
	}
	defer func() { k.comesBack(a, lease) }() // also when a hook panics
	if ctx.Err() != nil {
		return nil, a.ended(ctx, nil)
	}
	return a.wait(ctx)
}

// await waits for news. Nobody sends any more when it has returned, so that the channel
// serves again.
func (a *attempt) await(ctx context.Context) (n news, err error) {
	if f := a.c.cfg.Trace.Waiting; f != nil {
		a.tell(f)
	}
	n, err = a.hear(ctx)
	a.c.keeper.ears.Put(a.in.told)
	return n, err
}

// hear is await without the hook. Close sends news too: a channel that it closed would
// be one that all who wait here lock at every turn.
func (a *attempt) hear(ctx context.Context) (news, error) {
	var over <-chan time.Time
	if limit := a.limit(); limit != nil {
		defer limit.Stop()
		over = limit.C
	}
	select {
	case n := <-a.in.told:
		return n, nil
	case <-over:
	case <-ctx.Done():
	}
	why, ok := a.c.keeper.quits(a)
	switch {
	case !ok:
		return <-a.in.told, nil // soon
	case a.last == nil && why == nil && ctx.Err() == nil:
		why = errSilent
	}
	return 0, a.ended(ctx, why)
}

var errSilent = errors.New("it has not answered yet")

// tell calls the hook, and leaves the line if that panics.
func (a *attempt) tell(f func(WaitingInfo)) {
	k, ok := &a.c.keeper, false
	defer func() {
		if ok {
			return
		}
		if _, here := k.quits(a); !here {
			switch <-a.in.told {
			case promoted:
				k.comesBack(a, nil)
			case passed:
				a.refuse(a.in.lease)
				a.c.abandon(a.s, a.token, "", "0", a.doubt)
			}
		}
	}()
	k.mu.Lock()
	info := WaitingInfo{Name: a.s.keys.Name, Place: a.in.line.placeOf(a), Waited: a.waited(), Held: a.in.line.holder(a)}
	k.mu.Unlock()
	if info.Held == nil {
		info.Held = &HeldError{Name: a.s.keys.Name}
	}
	f(info)
	ok = true
}

// join puts the attempt into the line of its lock; true when it is the front.
func (k *keeper) join(a *attempt) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := a.s.keys.Lock
	ln := k.lines[key]
	if ln == nil {
		ln, _ = k.idle.Get().(*line)
		if ln == nil {
			ln = &line{}
		}
		ln.key = key
		k.lines[key] = ln
	}
	a.in.line = ln
	if !ln.front && ln.first == nil && !ln.open(a.s, a.began) {
		k.promote(ln, a)
		return true
	}
	a.in.told, _ = k.ears.Get().(chan news)
	if a.in.told == nil {
		a.in.told = make(chan news, 1)
	}
	if k.closed { // since a lock was asked for
		a.in.stage = told
		a.in.told <- shut
		return false
	}
	a.in.stage = waits
	if a.in.prev = ln.last; ln.last != nil {
		ln.last.in.next = a
	} else {
		ln.first = a
	}
	ln.last = a
	k.changed()
	if ln.first == a { // else nothing has changed for the first
		k.look(ln)
	}
	return false
}

// look does what is due in a line after anything in it has changed: it sends the
// first who waits to the server unless the lock may be passed on to it here. mu is
// held.
func (k *keeper) look(ln *line) {
	switch a := ln.first; {
	case ln.front || k.closed:
	case a == nil && ln.lease == nil:
		delete(k.lines, ln.key)
		*ln = line{timer: ln.timer, armed: ln.armed}
		k.idle.Put(ln)
	case a == nil:
	case ln.lease != nil && ln.open(a.s, k.client.clock.now()):
		k.armTurn(ln)
	default:
		ln.unlink(a)
		a.standing = a.began < ln.heard // as good as in the queue since
		a.last = ln.holder(a)           // for the error, when the server has not answered by then
		if ln.at > 0 && !ln.ahead {     // else the server puts it behind the others
			a.ticket = strconv.FormatInt(ln.serverTime(a.began), 10)
		}
		k.promote(ln, a)
		a.in.told <- promoted
	}
}

// promote makes an attempt the front. It asks for a block of fences when others of
// the line can make use of it, unless the last one reaches too far ahead. mu is held.
func (k *keeper) promote(ln *line, a *attempt) {
	ln.front, a.in.stage = true, front
	if (ln.lease != nil || ln.first != nil) && k.client.clock.now() >= k.blocksFrom {
		a.mode = modeBlock
	}
}

// comesBack ends an attempt's being the front, with a lease or without.
func (k *keeper) comesBack(a *attempt, l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ln := a.in.line
	ln.front, a.in.stage = false, outside
	if a.at > 0 {
		ln.hears(a)
	}
	if l != nil && l.state == held {
		k.beginTurn(ln, l)
	}
	k.look(ln)
}

// quits takes one who waits out of its line, and notes what is known of the lock's
// holder; false when it has been told already.
func (k *keeper) quits(a *attempt) (why error, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ln := a.in.line
	if a.in.stage != waits {
		return nil, false
	}
	if a.last = ln.holder(a); a.last != nil {
		a.last.Place = ln.placeOf(a)
	}
	why = ln.why
	ln.unlink(a)
	a.in.stage = outside
	k.changed()
	k.look(ln)
	return why, true
}

// stood notes what the front was told.
func (k *keeper) stood(a *attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ln, now := a.in.line, *a.last
	ln.heard, ln.held, ln.why = a.sent, &now, nil
	ln.hears(a)
}

// hears notes the server's clock, and where it put the one who asked: as long as the
// queue goes on with tickets from before the clock went back, one by the clock would
// pass all who stand there, for as long as the step.
func (ln *line) hears(a *attempt) {
	ticket, _ := strconv.ParseInt(a.ticket, 10, 64)
	ln.sent, ln.at, ln.ahead = a.sent, a.at, ticket > a.at+wentBack
}

// unanswered notes that the front had no answer, and gives up for those behind it
// who have waited for Config.GiveUp and never had one.
func (k *keeper) unanswered(a *attempt, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ln := a.in.line
	ln.why = err
	var next *attempt
	for w := ln.first; w != nil && w.waited() >= k.client.cfg.GiveUp; w = next {
		next = w.in.next
		if w.began > ln.heard {
			ln.unlink(w)
			w.in.stage, w.why = told, err
			w.in.told <- givenUp
		}
	}
}

func (ln *line) unlink(a *attempt) {
	prev, next := a.in.prev, a.in.next
	if a.in.prev, a.in.next = nil, nil; prev != nil {
		prev.in.next = next
	} else {
		ln.first = next
	}
	if next != nil {
		next.in.prev = prev
	} else {
		ln.last = prev
	}
}

// placeOf is the place among those of the line who do not have the lock, from 1.
func (ln *line) placeOf(a *attempt) int {
	n := 1
	if ln.front {
		n++
	}
	for a = a.in.prev; a != nil; a = a.in.prev {
		n++
	}
	return n
}

// holder says who has the lock, as far as the line knows; nil when it does not. The
// times in it are as of a.sent, which is set.
func (ln *line) holder(a *attempt) *HeldError {
	if l := ln.lease; l != nil {
		now := a.c.clock.now()
		h, _ := parseToken(l.token)
		a.sent = now
		return &HeldError{
			Name: a.s.keys.Name, Holder: h, Service: a.c.cfg.Name, Reason: l.spec.reason, Fence: l.fence,
			Since: now.sub(l.began), TTL: max(l.kept.sub(now), 0),
		}
	}
	if ln.held == nil {
		return nil
	}
	e := *ln.held
	e.Name, a.sent = a.s.keys.Name, ln.heard
	return &e
}

// behind are those who wait behind the attempt, by their leases to come. mu is held.
func (a *attempt) behind() (list []*Lease) {
	if a.in.stage != front {
		return nil
	}
	for w := a.in.line.first; w != nil; w = w.in.next {
		list = append(list, w.in.lease)
	}
	return list
}

// alsoUnder adds to the tokens of the leases under which the front waits those under
// which the others of its line do: they all wait by its entry in the queue, and a
// deadlock that one of them is in is to be found.
func (c *Client) alsoUnder(tokens []string, others []*Lease) []string {
	known := make(map[string]bool)
	for _, token := range tokens {
		known[token] = true
	}
	tokens = slices.Clip(tokens)
	for _, l := range others {
		for _, token := range c.under(l.under) {
			if !known[token] {
				known[token] = true
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}

// serverTime is the server's clock at that instant, in µs, or somewhat more.
func (ln *line) serverTime(at instant) int64 {
	return max(1, ln.at+at.sub(ln.sent).Microseconds())
}
