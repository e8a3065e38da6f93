package zamok

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/wake"
)

const (
	headLook    = 2 * time.Second        // how often the first in the queue asks the server
	longestLook = 5 * time.Minute        // how seldom anybody does; less than the TTL of a queue
	foreignLook = 250 * time.Millisecond // …while a program holds that tells nobody when it is done
	deafLook    = 250 * time.Millisecond // …while the server says that nobody hears us
	pollLook    = 500 * time.Millisecond // …of a waiter that may not subscribe; half of what it is granted
	lateMessage = 500 * time.Millisecond // a push that has not come by then is not coming
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
	token  string
	began  instant
	args   [5]string // of the acquire script
	ticket string
	waiter *wake.Waiter

	// unsure: a request of ours may have had, or may yet have, an effect that no
	// reply told of.
	unsure bool
	// member is the entry in the queue that the last waiting request asked for.
	member string
	// standing: a reply said that we stand in the queue.
	standing bool
	deaf     int  // replies in a row that said that nobody hears us
	handed   bool // the last holder's release passed the lock on to us

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
		return nil, fmt.Errorf("zamok: lock %q not acquired: %w", s.keys.Name, cause(ctx))
	}
	a := &attempt{c: c, s: s, token: c.newToken(), began: c.clock.now(), ticket: "0"}
	var lease *Lease
	var err error
	if wait {
		lease, err = a.wait(ctx)
	} else {
		lease, err = a.try(ctx)
	}
	if lease != nil && ctx.Err() != nil {
		lease.drop()
		lease, err, a.unsure = nil, a.ended(ctx, nil), true
	}
	// Only now: a message that comes while the lease is made is not an orphan.
	a.leave()
	if err != nil {
		if a.unsure || a.member != "" {
			c.abandon(s.keys, a.token, a.member, a.unsure)
		}
		if f := c.cfg.Trace.NotAcquired; f != nil {
			f(s.keys.Name, a.waited(), err)
		}
		return nil, err
	}
	if f := c.cfg.Trace.Acquired; f != nil {
		f(AcquiredInfo{Name: s.keys.Name, Fence: lease.fence, Waited: a.waited(), HandedOver: a.handed})
	}
	return lease, nil
}

func (a *attempt) waited() time.Duration { return a.c.clock.now().sub(a.began) }

// join makes the token one that waits in this process.
func (a *attempt) join() {
	if a.waiter == nil {
		a.waiter = a.c.inbox.Join(a.token)
	}
}

func (a *attempt) leave() {
	if a.waiter != nil {
		a.c.inbox.Leave(a.waiter)
		a.waiter = nil
	}
}

// try asks until there is one answer.
func (a *attempt) try(ctx context.Context) (*Lease, error) {
	for failures := 0; ; {
		ans, err := a.ask(ctx, "")
		switch {
		case err != nil:
			if err := a.failed(ctx, err, &failures); err != nil {
				return nil, err
			}
		case ans.status == "granted":
			return a.lease(ctx, ans.fence, a.sent, ans.pttl), nil
		case ans.status == "again":
		default:
			return nil, a.last
		}
	}
}

// wait stands in the queue until the lock is granted, ctx ends, or
// MutexConfig.Wait has passed.
func (a *attempt) wait(ctx context.Context) (*Lease, error) {
	limit := a.limit()
	if limit != nil {
		defer limit.Stop()
	}
	// A client that is not subscribed asks once without waiting: most locks are
	// free, and a process that never waits needs no subscription.
	stand, inbox := a.c.inbox.Up(), ""
	for failures := 0; ; {
		var ans answer
		var err error
		if stand {
			inbox, err = a.open(ctx)
		}
		if err == nil {
			ans, err = a.ask(ctx, inbox)
		}
		switch {
		case err != nil:
			if err := a.failed(ctx, err, &failures); err != nil {
				return nil, err
			}
			continue
		case ans.status == "granted":
			a.suspect(inbox, ans)
			return a.lease(ctx, ans.fence, a.sent, ans.pttl), nil
		case ans.status == "again":
			continue
		case ans.status == "held":
			stand = true
			continue
		}
		failures = 0
		a.stands(inbox, ans)
		if lease, err := a.sleep(ctx, limit, a.look(inbox, ans)); lease != nil || err != nil {
			return lease, err
		}
	}
}

// limit is the timer of MutexConfig.Wait, nil without one.
func (a *attempt) limit() *time.Timer {
	if a.s.wait == 0 {
		return nil
	}
	return time.NewTimer(a.s.wait)
}

// open makes sure that we can be told of a grant, and returns the inbox to give.
func (a *attempt) open(ctx context.Context) (string, error) {
	inbox, err := a.c.inbox.Open(ctx, callLimit)
	if err != nil {
		return "", err
	}
	if a.member != "" && a.args[2] != inbox {
		// The entry in the queue names another inbox. The new one is another
		// entry, so it needs another token, with the place of the old.
		a.leave()
		a.c.abandon(a.s.keys, a.token, a.member, a.unsure)
		a.token, a.member, a.unsure = a.c.newToken(), "", false
	}
	a.join()
	return inbox, nil
}

// ask runs the acquire script once and notes what it says.
func (a *attempt) ask(ctx context.Context, inbox string) (answer, error) {
	a.args = [...]string{a.token, a.s.ttlMS, inbox, a.ticket, mutexMode}
	if inbox != "" {
		a.member = mutexMode + "|" + a.token + "|" + a.s.ttlMS + "|" + inbox
	}
	ans, err := a.call(ctx, lua.Acquire, a.args[:])
	if err != nil {
		return ans, err
	}
	if ans.holder != "" {
		a.last = ans.held(a.s.keys.Name)
		a.last.Waited, a.last.Place = a.waited(), int(ans.place)
	}
	return ans, nil
}

// exchange runs the resume script once.
func (a *attempt) exchange(ctx context.Context, old string) (answer, error) {
	return a.call(ctx, lua.Resume, []string{old, a.token, a.s.ttlMS})
}

// call runs a script and notes the pair of times that go with its answer.
func (a *attempt) call(ctx context.Context, script *driver.Script, args []string) (answer, error) {
	sent := a.c.clock.now()
	ans, err := a.c.eval(ctx, driver.Call{Script: script, Keys: a.s.keys.Three, Args: args, Limit: a.callLimit()})
	if err == nil {
		a.sent, a.at = sent, ans.time
	}
	return ans, err
}

// callLimit bounds one request: short enough that GiveUp has room for another.
func (a *attempt) callLimit() time.Duration {
	return max(min(callLimit, a.c.cfg.GiveUp/2), time.Millisecond)
}

// failed decides what follows a request without an answer: nil to try again,
// after a pause, or the error to return.
func (a *attempt) failed(ctx context.Context, err error, failures *int) error {
	if r := refusal(a.s.keys.Name, err); r != nil {
		return r
	}
	// Not even a server error tells that nothing happened: the library may have
	// sent the request twice, and this may be the second answer.
	a.unsure = true
	switch {
	case ctx.Err() != nil:
		return a.ended(ctx, err)
	case a.c.isClosed():
		return ErrClosed
	case !a.standing && a.waited() >= a.c.cfg.GiveUp:
		return fmt.Errorf("zamok: lock %q not acquired: %w for %v: %w", a.s.keys.Name, ErrUnavailable, roundForPeople(a.waited()), err)
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

// ended is the error of an attempt that stops waiting. err is the last failure
// of a request, if that was the last that was heard.
func (a *attempt) ended(ctx context.Context, err error) error {
	why := cause(ctx)
	switch {
	case a.last != nil:
		e := *a.last
		e.Waited, e.Err = a.waited(), why
		if err != nil && why == nil {
			e.Err = err
		}
		return &e
	case err != nil && why != nil:
		return fmt.Errorf("zamok: lock %q not acquired: %w; %w: %w", a.s.keys.Name, why, ErrUnavailable, err)
	case err != nil:
		return fmt.Errorf("zamok: lock %q not acquired: %w: %w", a.s.keys.Name, ErrUnavailable, err)
	default:
		return fmt.Errorf("zamok: lock %q not acquired: %w", a.s.keys.Name, why)
	}
}

// stands notes a reply that says that we wait.
func (a *attempt) stands(inbox string, ans answer) {
	a.standing = true
	if ticket, ok := ans.extra.(string); ok {
		a.ticket = ticket
	}
	if inbox == wake.Poll || ans.ears > 0 {
		a.deaf = 0
	} else if a.deaf++; a.deaf > 1 && a.c.inbox.Up() {
		a.deaf = 0
		a.c.inbox.Suspect() // our library calls it up, the server knows nothing of it
	}
	if f := a.c.cfg.Trace.Waiting; f != nil {
		f(WaitingInfo{Name: a.s.keys.Name, Place: int(ans.place), Waited: a.waited(), Held: a.last})
	}
}

// suspect drops the subscription when this reply tells of a grant that a push
// should have told of. A fresh grant has a fence of now or later, so an earlier
// one was made by somebody else's hand-over.
func (a *attempt) suspect(inbox string, ans answer) {
	age := time.Duration(ans.time-ans.fence) * time.Microsecond
	if a.standing && inbox != wake.Poll && !a.unsure && age > lateMessage {
		a.c.inbox.Suspect()
	}
}

// look is how long to wait for a message before asking again. All who wait for
// one lock ask about twice a second together, whatever their number: the sum of
// 1/(2p) grows as its logarithm.
func (a *attempt) look(inbox string, ans answer) time.Duration {
	switch {
	case inbox == wake.Poll:
		return min(jitter(pollLook), whenOver(ans.pttl))
	case ans.ears == 0:
		return jitter(deafLook)
	case ans.place <= 1:
		return a.headLook(ans.pttl)
	case ans.place <= int64(longestLook/headLook):
		return jitter(headLook * time.Duration(ans.place))
	default:
		return jitter(longestLook)
	}
}

// headLook is look for the first in the queue, who is there when the holder's
// lease ends: the holder may have died.
func (a *attempt) headLook(left time.Duration) time.Duration {
	if a.last != nil && a.last.Holder.Foreign {
		return min(jitter(foreignLook), whenOver(left))
	}
	return min(jitter(headLook), whenOver(left))
}

// whenOver is a moment after a lease of that length ends; never for one that
// does not end.
func whenOver(left time.Duration) time.Duration {
	if left < 0 {
		return longestLook
	}
	return left + time.Millisecond + rand.N(4*time.Millisecond)
}

// sleep waits for whatever comes first. Without a lease or an error it is time
// to ask the server.
func (a *attempt) sleep(ctx context.Context, limit *time.Timer, d time.Duration) (*Lease, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var over <-chan time.Time
	if limit != nil {
		over = limit.C
	}
	for {
		select {
		case g := <-a.waiter.Grant:
			return a.accept(ctx, g), nil
		case left := <-a.waiter.Next:
			timer.Reset(a.headLook(left))
		case <-a.waiter.Doubt:
			return nil, nil
		case <-timer.C:
			return nil, nil
		case <-over:
			return nil, a.ended(ctx, nil)
		case <-ctx.Done():
			return nil, a.ended(ctx, nil)
		case <-a.c.closing:
			return nil, ErrClosed
		}
	}
}

// accept makes a lease of a hand-over, or returns nil when the message does not
// prove one and the server must be asked.
//
// The message's arrival is not the start of the lease, for it may have been
// delayed. But the server's clock was a.at when our clock was a.sent or later,
// and g.Time at the grant, so the grant came at a.sent + (g.Time − a.at) or later.
// If that difference is negative, the message is older than the reply that told
// us to wait, or the server's clock was set back; if it is more than the time
// that has passed here, its clock was set forward. Neither proves anything.
func (a *attempt) accept(ctx context.Context, g wake.Grant) *Lease {
	passed := time.Duration(g.Time-a.at) * time.Microsecond
	if passed < 0 || passed > a.c.clock.now().sub(a.sent) {
		return nil
	}
	from := a.sent.add(passed)
	if from.add(g.TTL-margin(g.TTL)).sub(a.c.clock.now()) < g.TTL/2 {
		return nil // so late that it is better to raise it first
	}
	a.handed = true
	return a.lease(ctx, g.Fence, from, g.TTL)
}

func (a *attempt) lease(ctx context.Context, fence int64, from instant, granted time.Duration) *Lease {
	return a.c.newLease(ctx, a.s, a.token, fence, from, granted)
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

func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
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
