package zamok

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/zamok-go/zamok/internal/wake"
)

const (
	headLook    = 2 * time.Second        // how often the first in the queue asks the server
	longestLook = 5 * time.Minute        // how seldom anybody does; less than the TTL of a queue
	foreignLook = 250 * time.Millisecond // …while a program holds that tells nobody when it is done
	deafLook    = 250 * time.Millisecond // …while the server says that nobody hears us
	closedLook  = 20 * time.Millisecond  // …after a quarantine
	pollLook    = 550 * time.Millisecond // …of a waiter that may not subscribe; about half of what it is granted
	// identifyAfter is how long to wait before asking what service holds: short
	// waits must not pay for it.
	identifyAfter = time.Second
	lateMessage   = 500 * time.Millisecond // a push that has not come by then is not coming
)

// wait stands in the queue until the lock is granted, ctx ends, or
// MutexConfig.Wait has passed.
func (a *attempt) wait(ctx context.Context) (*Lease, error) {
	a.token = a.c.newToken()
	limit := a.limit()
	if limit != nil {
		defer limit.Stop()
	}
	// A client that is not subscribed asks once without waiting: most locks are
	// free, and a process that never waits needs no subscription.
	stand, inbox := a.c.inboxes.Up(a.channel()), ""
	for failures := 0; ; {
		var ans answer
		var err error
		if stand {
			inbox, err = a.open(ctx)
		}
		before, then := a.last, a.at
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
			a.noteExpiry(before, then, ans)
			if lease, err := a.lease(ctx, ans.fence, a.sent, ans.pttl); lease != nil || err != nil {
				return lease, err
			}
			continue
		case ans.status == "again":
			continue
		case ans.status == "held":
			stand = true
			continue
		}
		failures = 0
		a.suspect(inbox, ans)
		a.stands(ctx, inbox, ans)
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
	return time.NewTimer(a.c.clock.until(a.began.add(a.s.wait)))
}

// channel is where we listen: in a cluster at the slot of the lock, since no other
// server than its primary knows who does.
func (a *attempt) channel() string {
	if a.c.d.Clustered() {
		return a.s.keys.Inbox(a.c.id)
	}
	return a.c.channel
}

// open makes sure that we can be told of a grant, and returns the inbox to give.
func (a *attempt) open(ctx context.Context) (string, error) {
	if a.box == nil {
		a.box = a.c.inboxes.Take(a.channel())
	}
	inbox, err := a.box.Open(ctx, a.callLimit())
	if err != nil {
		return "", err
	}
	if a.member != "" && a.args[2] != inbox {
		// The entry in the queue names another inbox. The new one is another
		// entry, so it needs another token, with the place of the old.
		a.leave()
		a.c.abandon(a.s, a.token, a.member, "0", a.doubt)
		a.token, a.member, a.doubt = a.c.newToken(), "", settled
	}
	a.join()
	return inbox, nil
}

// stands notes a reply that says that we wait.
func (a *attempt) stands(ctx context.Context, inbox string, ans answer) {
	a.standing = true
	if !a.listed {
		a.c.keeper.waits(a.token, &waiting{spec: a.s, began: a.began, under: a.c.under(ctx), attempt: a})
		a.listed = true
	}
	if ticket, ok := ans.extra.(string); ok {
		a.ticket = ticket
	}
	if inbox == wake.Poll || ans.ears > 0 {
		a.deaf = 0
	} else if a.deaf++; a.deaf > 1 && a.box.Up() {
		a.deaf = 0
		a.box.Suspect() // our library calls it up, the server knows nothing of it
	}
	if a.waited() > identifyAfter {
		a.c.identify(ctx, a.last) // one who gives up later says who held
	}
	if a.in.stage == front {
		a.c.keeper.stood(a)
	}
	if f := a.c.cfg.Trace.Waiting; f != nil {
		f(WaitingInfo{Name: a.s.keys.Name, Place: int(ans.place), Waited: a.waited(), Held: a.last})
	}
}

// suspect drops the subscription when this reply tells of a grant that a push
// should have told of: one that was made by somebody else's hand-over, or that we
// stood in the queue and do no more, so that our turn has come and gone. A fresh
// grant has a fence of now or later, so an earlier one is not this reply's.
func (a *attempt) suspect(inbox string, ans answer) {
	age := time.Duration(ans.time-ans.fence) * time.Microsecond
	if a.s.shared() { // a repetition has a fence of its own
		age = time.Duration(ans.ears) * time.Millisecond
	}
	missed := ans.status == "granted" && (ans.place == 0 || ans.place == grantedBefore && age > lateMessage) ||
		ans.status == "waits" && ans.fence == 0
	if missed && a.stood == a.token && inbox != "" && inbox != wake.Poll && a.doubt == settled && !a.doubted {
		a.box.Suspect()
	}
	a.doubted, a.stood = false, a.token
}

// look is how long to wait for a message before asking again. All who wait for
// one lock ask about twice a second together, whatever their number: the sum of
// 1/(2p) grows as its logarithm.
func (a *attempt) look(inbox string, ans answer) time.Duration {
	switch {
	case inbox == wake.Poll:
		return min(jitter(pollLook), whenOver(ans.pttl))
	case ans.ears == 0:
		return jitter(byPlace(deafLook, ans.place))
	case ans.place <= 1:
		return a.headLook(ans.pttl)
	case ans.holder == closedHolder: // those before it may be gone by the end, and nobody moves them on then
		return min(jitter(byPlace(headLook, ans.place)), whenOver(ans.pttl)+jitter(byPlace(closedLook, ans.place)))
	default:
		return jitter(byPlace(headLook, ans.place))
	}
}

func byPlace(first time.Duration, place int64) time.Duration {
	if place > int64(longestLook/first) {
		return longestLook
	}
	return first * time.Duration(max(place, 1))
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
			return a.accept(ctx, g)
		case left := <-a.waiter.Next:
			a.moved = true
			timer.Reset(a.headLook(left))
		case <-a.waiter.Doubt:
			a.doubted = true // it is known already that messages were lost
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
func (a *attempt) accept(ctx context.Context, g wake.Grant) (*Lease, error) {
	passed := time.Duration(g.Time-a.at) * time.Microsecond
	if passed < 0 || passed > a.c.clock.now().sub(a.sent) {
		return nil, nil
	}
	// The rates of the clocks may differ by 1 %: docs/guarantees.md.
	from := a.sent.add(passed - passed/100)
	if from.add(g.TTL-margin(g.TTL)).sub(a.c.clock.now()) < g.TTL/2 {
		return nil, nil // so late that it is better to raise it first
	}
	a.handed = true
	return a.lease(ctx, g.Fence, from, g.TTL)
}

func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}
