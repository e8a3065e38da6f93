package zamok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// taking is one call of Multi.Lock or Multi.TryLock.
//
// Whoever waits for a name has, of the names of its Multi, only such as come before
// it. So of all who wait for each other the one that has the last name of them waits
// for nobody, and there is no circle; and nobody passes anybody in a queue.
type taking struct {
	m     *Multi
	wait  bool
	began instant  // the call; it may go through the names again
	stood bool     // it stood in a queue, and so does not give up when the server does not answer
	held  []*Lease // each under the context of the one before
	rest  []*Mutex // what is not held, in the order of the names
	apart bool     // one script cannot take several
}

// acquire takes all of the locks, waiting or not.
func (m *Multi) acquire(ctx context.Context, wait bool) (*Leases, error) {
	c := m.client
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	t := &taking{m: m, wait: wait, began: c.clock.now()}
	for {
		t.held, t.rest, t.apart = nil, slices.Clone(m.locks), !m.one && c.apart.Load()
		err := t.run(ctx)
		if err == nil {
			return newLeases(t.held), nil
		}
		var lost *LostError
		_ = errors.As((&Leases{all: t.held}).Err(), &lost) || errors.As(err, &lost)
		t.giveUp(ctx)
		switch {
		case c.isClosed():
			return nil, ErrClosed
		case ctx.Err() != nil || t.over():
			return nil, err
		case lost != nil && (!wait || lost.Reason == LostBroken):
			return nil, lost
		case lost == nil && (!t.stood || !errors.Is(err, ErrUnavailable)), errors.As(err, new(*ReplicasError)), errors.Is(err, errUnconfirmed):
			return nil, err
		}
	}
}

// run goes through the names.
func (t *taking) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return t.ended(ctx)
	}
	for len(t.rest) > 0 {
		at, err := t.together(t.under(ctx))
		if err != nil {
			return err
		}
		if len(t.rest) == 0 {
			break
		}
		lease, err := t.alone(t.under(ctx), t.rest[at])
		if err != nil {
			return err
		}
		t.held, t.rest = append(t.held, lease), slices.Delete(t.rest, at, at+1)
	}
	t.complete()
	if t.under(ctx).Err() != nil || t.m.client.isClosed() {
		return t.ended(t.under(ctx))
	}
	return nil
}

// under is the context under which the next lock is taken.
func (t *taking) under(ctx context.Context) context.Context {
	if n := len(t.held); n > 0 {
		return t.held[n-1].Context()
	}
	return ctx
}

func (t *taking) waited() time.Duration { return t.m.client.clock.now().sub(t.began) }

// over says whether MutexConfig.Wait is.
func (t *taking) over() bool {
	limit := t.m.locks[0].spec.wait
	return limit > 0 && t.waited() >= limit
}

// spec is the lock's, with what is left of the time to wait.
func (t *taking) spec(lock *Mutex) *spec {
	if lock.spec.wait == 0 {
		return lock.spec
	}
	s := *lock.spec
	s.wait = max(s.wait-t.waited(), 1)
	return &s
}

// alone takes one lock as a Mutex does.
func (t *taking) alone(ctx context.Context, lock *Mutex) (*Lease, error) {
	lease, err := t.m.client.acquire(ctx, t.spec(lock), t.wait)
	var held *HeldError
	if errors.As(err, &held) {
		held.Waited = t.waited()
		t.stood = t.stood || held.Place > 0
	}
	var closed *QuarantineError
	if errors.As(err, &closed) {
		closed.Waited = t.waited()
	}
	t.stood = t.stood || lease != nil && lease.queued
	return lease, err
}

// together takes what it can of the rest in one request: of one who waits, those
// before the first that is not free, else all or nothing. It returns which of those
// that are left then is in the way. What a lock is refused for, other than that it is
// held, the request for it alone will tell, by its name.
func (t *taking) together(ctx context.Context) (at int, err error) {
	if len(t.rest) < 2 || t.apart {
		return 0, nil
	}
	c := t.m.client
	a := &attempt{c: c, s: t.spec(t.rest[0]), verb: "acquired", began: c.clock.now()}
	call, tokens := t.call()
	ans, err := a.insist(ctx, call)
	taken := 0
	if err == nil {
		taken, err = t.take(ctx, tokens, a.sent, ans)
		if err != nil {
			a.doubts(false)
		}
	}
	if a.doubt != settled { // a request may come yet that takes more
		for i, token := range tokens[taken:] {
			c.abandon(t.rest[i].spec, token, "", "0", a.doubt)
		}
	}
	var refused *ServerError
	switch {
	case errors.As(err, &refused):
		t.apart = true
		if refused.Code == "CROSSSLOT" {
			c.apart.Store(true) // this is a cluster
		}
		return 0, nil
	case err != nil:
		if f := c.cfg.Trace.NotAcquired; f != nil {
			f(t.rest[0].name, t.waited(), err)
		}
		return 0, err
	}
	if taken > 0 { // who has the last of them has all
		if err := a.confirm(ctx, t.held[len(t.held)-1]); err != nil {
			return 0, err
		}
	}
	if f := c.cfg.Trace.Acquired; f != nil {
		for _, l := range t.held[len(t.held)-taken:] {
			f(AcquiredInfo{Name: l.Name(), Fence: l.fence, Waited: t.waited()})
		}
	}
	return max(0, int(ans.place)-1-taken), nil
}

// call is the call that takes several, and the token for each.
func (t *taking) call() (driver.Call, []string) {
	all := "1"
	if t.wait {
		all = "0"
	}
	call := driver.Call{Script: lua.MultiAcquire, Args: []string{all, t.rest[0].spec.ttlMS}}
	for _, lock := range t.rest {
		set := lock.spec.keys
		call.Keys = append(call.Keys, set.Lock, set.Queue(), set.Fence())
		call.Args = append(call.Args, t.m.client.newToken())
	}
	tokens := call.Args[2:]
	return t.rest[0].spec.deciding(call), tokens
}

// take makes leases of what was granted, and returns how many.
func (t *taking) take(ctx context.Context, tokens []string, sent instant, ans answer) (int, error) {
	list, ok := ans.extra.([]any)
	if !ok || len(list)/2 > len(t.rest) {
		return 0, badReply(ans.extra)
	}
	c := t.m.client
	for i, lock := range t.rest[:len(list)/2] {
		var fence string
		var ms int64
		ok := set(&fence, list[2*i]) && set(&ms, list[2*i+1])
		num, err := strconv.ParseInt(fence, 10, 64)
		if !ok || err != nil || num <= 0 {
			return i, badReply(ans.extra) // somebody wrote a value of no lock behind our token
		}
		l := c.newLease(t.under(ctx), lock.spec, tokens[i], num, sent, time.Duration(ms)*time.Millisecond)
		t.held, t.rest = append(t.held, l), t.rest[1:]
	}
	return len(list) / 2, nil
}

// complete begins what MaxHold bounds.
func (t *taking) complete() {
	c := t.m.client
	k := &c.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	longest := c.clock.now().bound(t.m.maxHold)
	for _, l := range t.held {
		k.bound(l, longest)
	}
}

// giveUp releases what is held of locks of which not all are. It waits for that
// unless ctx has ended.
func (t *taking) giveUp(ctx context.Context) {
	if len(t.held) == 0 {
		return
	}
	done := make(chan struct{})
	t.m.client.background.Go(func() {
		defer close(done)
		_ = (&Leases{all: t.held}).Release(context.Background())
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// ended is the error of a call whose context ended between two locks.
func (t *taking) ended(ctx context.Context) error {
	return fmt.Errorf("zamok: %s not acquired: %w", t.m, cause(ctx))
}
