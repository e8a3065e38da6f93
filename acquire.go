package zamok

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/wake"
)

// attempt is one call of Lock or TryLock: one token, from its first request to
// the lease or to the abandon.
//
// A message and a reply of a poll may both tell of one grant, or either may be
// lost, so a grant is taken from whichever comes first and the token decides:
// whatever else arrives for it is a repetition.
type attempt struct {
	c      *Client
	s      *spec
	verb   string // what it is to be, for errors
	token  string
	won    string // the token of the lease, of a quorum, where each round of votes has its own
	began  instant
	args   []string  // of the acquire script
	first  [7]string // their first place
	ticket string
	mode   string      // how it stands in a queue
	box    *wake.Inbox // where it waits, nil until it has to
	waiter *wake.Waiter
	in     place // among the goroutines of this client

	// why is the most telling failure of a request.
	why error
	// member is the entry in the queue that the last waiting request asked for.
	member string
	deaf   int // replies in a row that said that nobody hears us

	doubt    doubt  // what a request of ours may have had, or may yet have, for an effect that no reply told of
	standing bool   // a reply said that we stand in the queue
	stood    string // the token that stood there, by the last reply
	doubted  bool   // the subscription broke since then
	listed   bool   // the client's presence names this wait
	handed   bool   // the last holder's release passed the lock on to us
	moved    bool   // since the last look a message said that another holds, or that the lock rests

	// sent and at are the pair from which the start of a later hand-over is
	// computed: our clock before the request, and the server's in its reply.
	sent instant
	at   int64
	last *HeldError // what the last reply said of the holder
}

// acquire takes the lock, waiting or not.
func (c *Client) acquire(ctx context.Context, s *spec, wait bool) (*Lease, error) {
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("zamok: %s not acquired: %w", s, cause(ctx))
	}
	a := c.attempt()
	*a = attempt{c: c, s: s, verb: "acquired", began: c.clock.now(), ticket: "0", mode: s.mode()}
	a.args = a.first[:0]
	var lease *Lease
	var err error
	switch {
	case !wait:
		lease, err = a.try(ctx)
	case s.kind == writer && s.minHold == 0 && c.cfg.HandOver > 0:
		lease, err = a.inLine(ctx)
	default:
		lease, err = a.wait(ctx)
	}
	switch {
	case lease == nil:
	case ctx.Err() != nil:
		a.refuse(lease)
		lease, err = nil, a.ended(ctx, nil)
	case c.isClosed(): // Close may have looked before the lease was there
		a.refuse(lease)
		lease, err = nil, ErrClosed
	}
	// Only now: a message that comes while the lease is made is not an orphan.
	a.leave()
	if a.box != nil {
		c.inboxes.Give(a.box)
	}
	if err != nil {
		if a.doubt != settled || a.member != "" {
			c.abandon(s, a.token, a.member, "0", a.doubt)
		}
		if f := c.cfg.Trace.NotAcquired; f != nil {
			f(s.keys.Name, a.waited(), err)
		}
		return nil, err
	}
	if f := c.cfg.Trace.Acquired; f != nil {
		f(AcquiredInfo{Name: s.keys.Name, Fence: lease.fence, Waited: a.waited(), HandedOver: a.handed})
	}
	if a.token == "" { // served in its line: nobody else knows of it any more
		*a = attempt{}
		c.attempts.Put(a)
	}
	return lease, nil
}

// attempt is one to be filled.
func (c *Client) attempt() *attempt {
	if a, ok := c.attempts.Get().(*attempt); ok {
		return a
	}
	return new(attempt)
}

// refuse gives up a lease that nobody was told of: it is then to be abandoned.
func (a *attempt) refuse(l *Lease) {
	l.drop()
	if a.won != "" {
		a.c.abandon(a.s, a.won, "", "0", unsure)
		return
	}
	a.token = l.token
	a.doubts(false)
}

// doubts notes that a request may have had an effect that we shall not use; had: the token
// has a place in the queue by another.
func (a *attempt) doubts(had bool) {
	if a.doubt == settled && !had {
		a.doubt = unsure
	} else {
		a.doubt = tangled
	}
}

func (a *attempt) waited() time.Duration { return a.c.clock.now().sub(a.began) }

// join makes the token one that waits in this process.
func (a *attempt) join() {
	if a.waiter == nil {
		a.waiter = a.box.Join(a.token)
	}
}

func (a *attempt) leave() {
	if a.waiter != nil {
		a.box.Leave(a.waiter)
		a.waiter = nil
	}
	if a.listed {
		a.c.keeper.waits(a.token, nil)
		a.listed = false
	}
}

// try asks until there is one answer.
func (a *attempt) try(ctx context.Context) (*Lease, error) {
	a.token = a.c.newToken()
	for failures := 0; ; {
		ans, err := a.ask(ctx, "")
		switch {
		case err != nil:
			if err := a.failed(ctx, err, &failures); err != nil {
				return nil, err
			}
		case ans.status == "granted":
			if lease, err := a.lease(ctx, ans.fence, a.sent, ans.pttl); lease != nil || err != nil {
				return lease, err
			}
		case ans.status == "again":
		default:
			a.c.identify(ctx, a.last)
			return nil, a.last.refused()
		}
	}
}

// ask runs the acquire script once and notes what it says.
func (a *attempt) ask(ctx context.Context, inbox string) (answer, error) {
	a.args = append(a.args[:0], a.token, a.s.ttlMS, inbox, a.ticket, a.mode)
	if inbox != "" {
		a.member = a.mode + "|" + a.token + "|" + a.s.ttlMS + "|" + inbox
	}
	call := a.s.acquireCall(a.args)
	a.args = call.Args
	ans, err := a.call(ctx, call)
	if err != nil {
		a.args = slices.Clone(a.args) // a call that was given up may still read the old
		return ans, err
	}
	if ans.status == "held" || ans.status == "waits" {
		a.last, a.moved = a.refusedBy(ans), false
	}
	return ans, nil
}

// refusedBy says why an answer grants nothing.
func (a *attempt) refusedBy(ans answer) *HeldError {
	e := ans.held(a.s.keys.Name)
	e.Waited, e.Place = a.waited(), int(ans.place)
	if e.Quarantine {
		a.c.closed(e.TTL)
	}
	return e
}

// call runs a script and notes the pair of times that go with its answer.
func (a *attempt) call(ctx context.Context, call driver.Call) (answer, error) {
	sent := a.c.clock.now()
	call.Limit = a.callLimit()
	ans, err := a.c.eval(ctx, call)
	if err != nil {
		return ans, err
	}
	if ans.status == "granted" {
		if a.c.quorum != nil {
			a.won, _ = ans.extra.(string)
		}
		if sent.add(ans.pttl-margin(ans.pttl)-a.s.grace) <= a.c.clock.now() {
			if a.won != "" {
				a.c.abandon(a.s, a.won, "", "0", settled)
			}
			return answer{}, errLate // asked again, the script raises what is left
		}
	}
	a.sent, a.at = sent, ans.time
	return ans, nil
}

var errLate = errors.New("the grant came when its time was over")

// callLimit bounds one request: short enough that GiveUp has room for another,
// and no longer than what is left of GiveUp and of MutexConfig.Wait, but for the
// time that an answer needs.
func (a *attempt) callLimit() time.Duration {
	const answer = 250 * time.Millisecond
	limit, waited := min(callLimit, a.c.cfg.GiveUp/2), a.waited()
	if !a.standing {
		limit = min(limit, max(a.c.cfg.GiveUp-waited, answer))
	}
	if a.s.wait > 0 {
		limit = min(limit, max(a.s.wait-waited, answer))
	}
	return max(limit, time.Millisecond)
}

// failed decides what follows a request without an answer: nil to try again,
// after a pause, or the error to return.
func (a *attempt) failed(ctx context.Context, err error, failures *int) error {
	if r := refusal(a.s.keys.Name, err); r != nil {
		return r
	}
	// Not even a server error tells that nothing happened: the library may have
	// sent the request twice, and this may be the second answer.
	a.doubts(a.standing)
	if a.why == nil || !errors.Is(err, context.DeadlineExceeded) {
		a.why = err // silence tells less than any words before it
	}
	if a.in.stage == front {
		a.c.keeper.unanswered(a, a.why)
	}
	switch {
	case ctx.Err() != nil:
		return a.ended(ctx, err)
	case a.c.isClosed():
		return ErrClosed
	case !a.standing && a.waited() >= a.c.cfg.GiveUp:
		return a.gaveUp()
	case a.s.wait > 0 && a.waited() >= a.s.wait:
		return a.ended(ctx, err)
	}
	if a.standing && *failures == 0 {
		a.c.cfg.Logger.Warn("zamok: no answer while waiting for a lock; trying on", "lock", a.s.keys.Name, "err", err)
	}
	pause := 25 * time.Millisecond << min(*failures, 5)
	*failures++
	sleepOr(ctx, a.c.closing, jitter(pause))
	return nil
}

// gaveUp is the error of an attempt that had no answer for Config.GiveUp.
func (a *attempt) gaveUp() error {
	return fmt.Errorf("zamok: %s not %s in %v: %w", a.s, a.verb, roundForPeople(a.waited()), unavailable(a.why))
}

// ended is the error of an attempt that stops waiting. err is the last failure
// of a request, if that was the last that was heard.
func (a *attempt) ended(ctx context.Context, err error) error {
	why := cause(ctx)
	switch {
	case a.last != nil:
		e := *a.last
		if e.Since > 0 { // as of now, not of the last look
			e.Since += a.c.clock.now().sub(a.sent)
		}
		e.Waited, e.Err = a.waited(), why
		if err != nil {
			e.Err = errors.Join(why, unavailable(err))
		}
		if err == nil && why == nil {
			a.c.identify(ctx, &e)
		}
		return e.refused()
	case err != nil && why != nil:
		return fmt.Errorf("zamok: %s not %s: %w; %w", a.s, a.verb, why, unavailable(err))
	case err != nil:
		return fmt.Errorf("zamok: %s not %s: %w", a.s, a.verb, unavailable(err))
	default:
		return fmt.Errorf("zamok: %s not %s: %w", a.s, a.verb, why)
	}
}

// lease makes a lease of what the server granted; nil without an error when the server
// is to be asked again.
func (a *attempt) lease(ctx context.Context, fence int64, from instant, granted time.Duration) (*Lease, error) {
	l := a.in.lease
	if l == nil {
		l = a.c.prepare(ctx, a.s)
	}
	l.token, l.fence, l.queued = cmp.Or(a.won, a.token), fence, a.member != ""
	if a.mode == modeBlock {
		l.spare = blockSize - 1
	}
	l.begin(from, granted)
	return a.confirmed(ctx, l)
}

// cause is why ctx ended, nil when it has not: its error, and what was given as
// the cause of that.
func cause(ctx context.Context) error {
	err := ctx.Err()
	if c := context.Cause(ctx); c != nil && !errors.Is(c, err) {
		return errors.Join(err, c)
	}
	return err
}

func sleepOr(ctx context.Context, stop <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-stop:
	}
}
