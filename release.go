package zamok

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// Release gives the lock back; it goes to the first waiter, in the same step, or to the
// next goroutine of this client without a request (Config.HandOver). The lease's context
// ends first, with ErrReleased.
//
// A ctx that is cancelled does not stop it, so it can be deferred. A deadline of
// ctx that is still to come bounds only how long Release waits for the server's
// answer; then, as after Config.GiveUp or when the lease would have ended anyway,
// it returns an error that wraps ErrUnavailable, and the work goes on behind for some seconds. What cannot be
// told to the server ends by its TTL.
//
// It returns a *LostError when the lease was lost before, and then changes nothing
// for whoever holds the lock now (when the answer took 8 ms or more, a lock that nobody
// has is no loss: the client library may have sent the release twice); ErrReleased when it was released or detached
// before; a *ServerError when the server refuses, and then the TTL ends the lock.
func (l *Lease) Release(ctx context.Context) error {
	p, err := l.part()
	if err != nil {
		return err
	}
	return l.giveBack(ctx, p, nil)
}

// parting is the end of a lease, of which the server is to be told unless it was
// passed on.
type parting struct {
	at   instant
	lost *LostError // it was lost before
	next *attempt   // it was passed on to this one
}

// part ends a lease here. It returns what Release does when that was done before.
func (l *Lease) part() (parting, error) {
	k := &l.client.keeper
	k.mu.Lock()
	now := l.client.clock.now()
	lapsed := l.lapsed(now) // one whose time has passed is lost and not released
	if l.state == released {
		defer k.mu.Unlock()
		return parting{}, l.err()
	}
	p := parting{at: now, lost: l.lost, next: k.pass(l, now)}
	if p.next == nil {
		l.state = released
		k.remove(l)
		k.ending[l.token] = struct{}{}
	}
	k.mu.Unlock()
	if lapsed != nil {
		l.tell(lapsed)
	}
	l.endContext(ErrReleased)
	if p.next != nil {
		p.next.in.told <- passed
	}
	return p, nil
}

// giveBack tells the server and the hook. first is what came of a first try, nil when
// there was none.
func (l *Lease) giveBack(ctx context.Context, p parting, first *driver.Result) error {
	handed, err := p.next != nil, error(nil)
	if !handed {
		handed, err = l.tellServer(ctx, p, first)
		l.client.keeper.ended(l)
	}
	if f := l.client.cfg.Trace.Released; f != nil {
		f(ReleasedInfo{Name: l.Name(), Held: p.at.sub(l.began), HandedOver: handed, Err: err})
	}
	return err
}

// releaseTime is how long a release that began then waits for the server's answer.
func (l *Lease) releaseTime(ctx context.Context, began instant) time.Duration {
	until := l.client.cfg.GiveUp
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			until = min(until, left)
		}
	}
	return min(until, max(l.ends().sub(began), 250*time.Millisecond)) // its TTL ends it then
}

// tellServer gives the lease back. One that was lost may still be there, when it
// was lost by the clock alone.
func (l *Lease) tellServer(ctx context.Context, p parting, first *driver.Result) (handed bool, err error) {
	if p.lost != nil {
		l.abandon(settled)
		return false, p.lost
	}
	until := l.releaseTime(ctx, p.at)
	ctx = context.WithoutCancel(ctx)
	for failures := 0; ; failures++ {
		left := until - l.client.clock.now().sub(p.at)
		var ans answer
		var err error
		if failures == 0 && first != nil {
			ans, err = answerOf(*first)
		} else {
			ans, err = l.sendRelease(ctx, max(min(left, callLimit), time.Millisecond))
		}
		if err == nil {
			if ans.status == "released" && ans.pttl > 0 {
				l.client.keeper.rests(l, ans.pttl)
			}
			return ans.status == "handed", l.releasedAs(ctx, ans, p.at, failures > 0)
		}
		if r := refusal(l.Name(), err); r != nil {
			return false, r
		}
		if isMoving(err) && l.letGo(ctx, max(min(left, callLimit), time.Millisecond)) {
			l.abandon(unsure) // which hands it over when the slot is there
			return false, nil
		}
		pause := 25 * time.Millisecond << min(failures, 5)
		if l.client.isClosed() || l.client.clock.now().sub(p.at)+pause >= until {
			l.abandon(unsure)
			return false, fmt.Errorf("zamok: release of lock %q not confirmed, tried on behind: %w", l.Name(), unavailable(err))
		}
		sleepOr(ctx, l.client.closing, pause)
	}
}

// abandon has the release go on behind.
func (l *Lease) abandon(d doubt) {
	if l.client.enter() {
		l.client.abandon(l.as(), l.token, "", l.rest(), d)
		l.client.leave()
	}
}

// letGo frees the lock by its own key, where the others of its slot are at another
// server. What several have, and a rest, need the other keys.
func (l *Lease) letGo(ctx context.Context, limit time.Duration) bool {
	if l.as().shared() || l.rest() != "0" {
		return false
	}
	ans, err := l.client.eval(ctx, l.letGoCall(limit))
	return err == nil && ans.status == "released"
}

func (l *Lease) letGoCall(limit time.Duration) driver.Call {
	return driver.Call{Script: lua.LetGo, Keys: l.as().keys.One(), Args: []string{l.token}, Limit: limit}
}

// sendRelease sends the release once. Its arguments serve for another when it was
// answered: a call that was given up may still read them.
func (l *Lease) sendRelease(ctx context.Context, limit time.Duration) (answer, error) {
	args, _ := l.client.args.Get().(*[4]string)
	if args == nil {
		args = new([4]string)
	}
	ans, err := l.client.eval(ctx, l.releaseCall(args[:0], limit))
	if err == nil {
		l.client.args.Put(args)
	}
	return ans, err
}

// releaseCall is the call that releases the lease, with what is left of MinHold. args
// is where its arguments are put.
func (l *Lease) releaseCall(args []string, limit time.Duration) driver.Call {
	return l.as().releaseCall(append(args, l.token, "", l.rest()), limit)
}

// rest is what is left of MinHold, in ms.
func (l *Lease) rest() string {
	if s := l.as(); s.minHold > 0 {
		if left := s.minHold - l.client.clock.now().sub(l.began); left > 0 {
			return strconv.FormatInt(ceilMS(left), 10)
		}
	}
	return "0"
}

// repeatPause is the least that a library waits before it sends a call again by itself
// (go-redis, in seconds: 0.008 to 0.512).
const repeatPause = 8 * time.Millisecond

// releasedAs tells what the answer of a release that began then means. repeated says
// that an earlier try may have been what released it; then what is found now is no loss.
func (l *Lease) releasedAs(ctx context.Context, ans answer, began instant, repeated bool) error {
	if ans.status == "released" || ans.status == "handed" || repeated {
		return nil
	}
	took := l.client.clock.now().sub(began)
	ans = l.as().found(ans)
	if h, _ := parseValue(ans.holder); h.Resting && h.Token == restMark+l.token[len(tokenMark):] {
		return nil // a library's own second try
	}
	e, last := l.client.lossOf(ctx, l, ans)
	mine := last == l.lastFence() || l.as().shared() && last > l.fence // the fences of the others go on
	if ans.status == "absent" && mine && e.Reason != LostBroken {
		// Nobody had anything of this slot after us, so nothing was lost: a
		// library's first try released it and its reply was lost, or somebody
		// deleted the key, which did no harm.
		return nil
	}
	if took >= repeatPause && l.givenAfter(e, ans, last, began) {
		return nil
	}
	l.report(e)
	return e
}

// givenAfter reports whether what a release found instead of the lease is what a
// library's first try of it leaves: a lock that nobody has, or one that was given away
// since the release began. A fence is the server's time of its grant, in µs, or the last
// one and 1 where that is more.
func (l *Lease) givenAfter(e *LostError, ans answer, last int64, began instant) bool {
	switch e.Reason {
	case LostDeleted:
		return true
	case LostTaken:
		_, fence := parseValue(ans.holder)
		if fence == 0 { // readers have none
			fence = last
		}
		later := time.Duration(fence-l.fence) * time.Microsecond
		held := began.sub(l.began)
		early := held/100 + l.client.quorum.apart() // by which clocks differ
		if l.spare > 0 {
			early += l.client.cfg.HandOver // fences that are reserved are behind the time
		}
		latest := held + l.client.clock.now().sub(began) + margin(held) + l.client.quorum.apart() + callLimit // it took that long to get, at most
		return later >= held-early && later <= latest
	default:
		return false
	}
}
