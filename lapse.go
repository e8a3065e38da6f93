package zamok

import (
	"math/rand/v2"
	"time"

	"github.com/zamok-go/zamok/internal/token"
)

// How a lease ends that nobody here released.

// lose marks the lease as lost. mu is held; tell follows without it.
func (l *Lease) lose(e *LostError) {
	e.Name, e.Fence = l.Name(), l.fence
	l.state, l.lost = lost, e
	if l.line != nil {
		l.client.keeper.look(l.line)
	}
}

// lapsed is lapse if the lease's time has come at that instant. mu is held.
func (l *Lease) lapsed(now instant) *LostError {
	if l.state != held || now < l.stopAt() {
		return nil
	}
	return l.lapse()
}

// lapse ends a lease whose time has come, and leaves it in the heap until the
// server's time for it has come too: only then is it given up on the server,
// because its holder may need its grace to stop. mu is held.
func (l *Lease) lapse() *LostError {
	e := &LostError{Reason: LostExpired, Err: l.renewal}
	if l.end() >= l.longest {
		e = &LostError{Reason: LostMaxHold}
	}
	l.lose(e)
	l.renewAt = never
	if !l.client.keeper.closed {
		l.client.keeper.reschedule(l)
	}
	return e
}

// tell ends the context of a lost lease and reports it.
func (l *Lease) tell(e *LostError) {
	l.endContext(e)
	l.report(e)
}

// mostEarly bounds how many breaks of leases that are not there are remembered.
const mostEarly = 64

// asked renews a lease at once, since an operator is said to have broken it. The
// message may come before the reply that makes the lease. It must not block.
func (k *keeper) asked(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.tokens[token]; l != nil {
		k.renewBy(l, k.client.clock.now())
		return
	}
	if k.early == nil || len(k.early) >= mostEarly {
		k.early = make(map[string]struct{})
	}
	k.early[token] = struct{}{}
}

// heard renews, over some seconds, the leases of which a message may have been
// lost: the subscription has just come up, and their next renewal may be far. It
// must not block.
func (k *keeper) heard() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.client.clock.now()
	spread := time.Duration(1+len(k.tokens)/announceEach) * time.Second
	for _, l := range k.tokens {
		if l.spec.ttl > listenAbove {
			k.renewBy(l, now.add(rand.N(spread)))
		}
	}
}

// renewBy has a lease renewed at that instant or earlier. mu is held.
func (k *keeper) renewBy(l *Lease, at instant) {
	switch {
	case l.state != held:
	case l.renewAt == never: // a renewal is under way, and may have passed the break
		l.again = true
	case at < l.renewAt:
		l.renewAt = at
		k.reschedule(l)
	}
}

// broken marks a lease that an operator broke, as the server's value of the lock
// says; false when it was over already. The holder may still release it, since it
// has the lock until then; if it does not, it is given up when the lease ends. The
// caller tells.
func (l *Lease) broken(value string) bool {
	k := &l.client.keeper
	_, by, why, _ := token.ParseBroken(value)
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.state != held {
		return false
	}
	l.lose(&LostError{Reason: LostBroken, Operator: by, Why: why})
	l.renewAt = never
	if !k.closed {
		k.reschedule(l)
	}
	return true
}

// tellAll ends all contexts before it reports: a hook or a logger may be slow.
func tellAll(leases []*Lease) {
	for _, l := range leases {
		l.endContext(l.lost)
	}
	for _, l := range leases {
		l.report(l.lost)
	}
}

// renewSoon has the lease renewed now: what the renewal under way told says
// nothing.
func (l *Lease) renewSoon() {
	k := &l.client.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.state == held && l.at >= 0 {
		l.renewAt = k.client.clock.now()
		k.reschedule(l)
	}
}
