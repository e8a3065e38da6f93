package zamok

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/token"
)

// What is done by whoever has the token of a lease and not the lease: another
// process took it and gave it away (Lease.Detach).

// Resume goes on with a lease that another process detached, or whose process is
// gone, given its token. The token is exchanged for one of this client and the
// fence for the next larger one, in one step: whoever still has the old token
// holds nothing from then on. The TTL becomes at least MutexConfig.TTL.
//
// It returns a *LostError, without a fence, when the token does not hold the lock
// (LostExpired when nobody does, also when it was released; LostTaken when another
// does; LostBroken when an operator asked it to end), which is then left as it is;
// otherwise errors as Lock.
func (m *Mutex) Resume(ctx context.Context, token string) (*Lease, error) {
	if err := m.checkToken(token); err != nil {
		return nil, err
	}
	c := m.client
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	a := &attempt{c: c, s: m.spec, verb: "resumed", token: c.newToken(), began: c.clock.now(), ticket: "0"}
	lease, err := a.resume(ctx, token)
	if lease != nil && c.isClosed() {
		lease.drop()
		lease, err, a.doubt = nil, ErrClosed, max(a.doubt, unsure)
	}
	if err != nil && a.doubt != settled {
		c.abandon(m.spec, a.token, "", "0", a.doubt)
	}
	if err == nil && c.cfg.Trace.Acquired != nil {
		c.cfg.Trace.Acquired(AcquiredInfo{Name: m.name, Fence: lease.fence, Waited: a.waited()})
	}
	return lease, err
}

// resume exchanges the token.
func (a *attempt) resume(ctx context.Context, old string) (*Lease, error) {
	ans, err := a.insist(ctx, a.s.deciding(driver.Call{Script: lua.Resume, Keys: a.s.keys.Main, Args: []string{old, a.token, a.s.ttlMS}}))
	switch {
	case err != nil:
		return nil, err
	case ans.status == "granted" && ctx.Err() != nil:
		a.doubts(false)
		return nil, a.ended(ctx, nil)
	case ans.status == "granted":
		a.c.keeper.takeBack(old) // if it was this client that had given it away
		lease, err := a.lease(ctx, ans.fence, a.sent, ans.pttl)
		if lease == nil && err == nil { // it was lost at once: the server says how
			return a.resume(ctx, old)
		}
		return lease, err
	case ans.status == "held":
		return nil, a.refusedBy(ans).refused()
	case ans.status == "broken" && strings.HasPrefix(ans.holder, a.token+":"):
		a.doubts(false) // an earlier try had exchanged it
	}
	return nil, a.notOurs(ctx, old, ans)
}

// ExtendToken raises what is left of a lease that another process detached to at
// least d, 100 ms to 24 h, given its token. Nothing renews it afterwards. The lease
// stays listed for that long (package inspect), also when this client is closed.
//
// Errors are those of Resume. A lease that this client holds is extended as by
// Lease.Extend.
func (m *Mutex) ExtendToken(ctx context.Context, token string, d time.Duration) error {
	if err := m.checkToken(token); err != nil {
		return err
	}
	if err := m.client.cfg.checkTTL("duration", d); err != nil {
		return err
	}
	c := m.client
	if l := m.own(token); l != nil {
		return l.Extend(ctx, d)
	}
	if !c.enter() {
		return ErrClosed
	}
	defer c.leave()
	a := &attempt{c: c, s: m.spec, verb: "extended", token: token, began: c.clock.now()}
	ans, err := a.insist(ctx, m.spec.renewCall([]string{token, strconv.FormatInt(ceilMS(d), 10)}, 0))
	if err != nil {
		return err
	}
	if ans.status != "renewed" {
		if ans.status != "broken" {
			c.keeper.takeBack(token)
		}
		return a.notOurs(ctx, token, ans)
	}
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	c.keeper.give(gift{lease: m.spec.named(token), ends: a.sent.add(ans.pttl)})
	return nil
}

// ReleaseToken releases a lease that another process detached, given its token:
// the lock goes to the first who waits. Unlike Lease.Release it ends with ctx; then
// nobody can say whether it was released.
//
// Errors are those of Resume; after a *LostError nothing was changed. A lease that
// this client holds is released as by Lease.Release.
func (m *Mutex) ReleaseToken(ctx context.Context, token string) error {
	if err := m.checkToken(token); err != nil {
		return err
	}
	c := m.client
	if l := m.own(token); l != nil {
		return l.Release(ctx)
	}
	if !c.enter() {
		return ErrClosed
	}
	defer c.leave()
	a := &attempt{c: c, s: m.spec, verb: "released", token: token, began: c.clock.now()}
	// Asked first: of a release whose first answer was lost the second cannot tell
	// whether the first did it or the lease had been over before.
	ans, err := a.insist(ctx, m.spec.renewCall([]string{token, "0"}, 0))
	if err != nil {
		return err
	}
	if ans.status != "renewed" && ans.status != "broken" {
		c.keeper.takeBack(token)
		return a.notOurs(ctx, token, ans)
	}
	a.doubt = settled
	began := c.clock.now()
	ans, err = a.insist(ctx, m.spec.releaseCall([]string{token, "", "0"}, 0))
	if err != nil {
		return err
	}
	c.keeper.takeBack(token)
	if ans.status == "released" || ans.status == "handed" || a.doubt != settled || c.clock.now().sub(began) >= repeatPause {
		return nil // if there were several tries, of ours or a library's, an earlier one may have been it
	}
	return a.notOurs(ctx, token, ans)
}

// own returns the lease of that token if this client holds it, and it is one of
// this lock: a token may be of another.
func (m *Mutex) own(token string) *Lease {
	if l := m.client.keeper.lease(token); l != nil && l.spec.keys.Lock == m.spec.keys.Lock {
		return l
	}
	return nil
}

// checkToken says what is wrong with the mutex or the token.
func (m *Mutex) checkToken(text string) error {
	if m.err != nil {
		return m.err
	}
	if err := m.client.noQuorum("token", "members that do not answer would keep the old one"); err != nil {
		return err
	}
	if h, ok := parseToken(text); !ok || h.Resting {
		return badField("token", "%.64q is no token of zamok", text)
	}
	return nil
}

// insist runs a script until there is an answer.
func (a *attempt) insist(ctx context.Context, call driver.Call) (answer, error) {
	if ctx.Err() != nil {
		return answer{}, a.ended(ctx, nil)
	}
	for failures := 0; ; {
		ans, err := a.call(ctx, call)
		if err == nil {
			return ans, nil
		}
		if err := a.failed(ctx, err, &failures); err != nil {
			return answer{}, err
		}
	}
}

// notOurs says that the token does not hold the lock, and why.
func (a *attempt) notOurs(ctx context.Context, old string, ans answer) error {
	ans = a.s.found(ans)
	e := &LostError{Name: a.s.keys.Name, Reason: LostTaken}
	e.By, _ = parseValue(ans.holder)
	note := ans.holder
	switch ans.status {
	case "broken":
		e.By = Holder{}
	case "absent":
		e.Reason = LostExpired
		fallthrough
	default:
		reply, err := a.c.d.Eval(ctx, a.s.autopsy(old))
		_, note = afterwards(driver.Result{Reply: reply, Err: err})
	}
	if lease, by, why, ok := token.ParseBroken(note); ok && (lease == old || lease == a.token) {
		e.Reason, e.Operator, e.Why = LostBroken, by, why
	}
	return e
}
