package zamok

import (
	"github.com/zamok-go/zamok/internal/token"
)

// How a lease ends that nobody here released.

// lose marks the lease as lost. mu is held; tell follows without it.
func (l *Lease) lose(e *LostError) {
	e.Name, e.Fence = l.Name(), l.fence
	l.state, l.lost = lost, e
}

// lapse ends a lease whose time has come, and leaves it in the heap until the
// server's time for it has come too: only then is it given up on the server,
// because its holder may need its grace to stop. mu is held.
func (l *Lease) lapse() *LostError {
	e := &LostError{Reason: LostExpired, Err: l.renewal}
	if s := l.spec; s.maxHold > 0 && l.end >= l.began.add(s.maxHold) {
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
	l.cancel(e)
	l.report(e)
}

// asked renews a lease at once, since an operator is said to have broken it. It
// must not block.
func (k *keeper) asked(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.tokens[token]
	switch {
	case l == nil || l.state != held:
	case l.renewAt == never: // a renewal is under way, and may have passed the break
		l.again = true
	default:
		l.renewAt = k.client.clock.now()
		k.reschedule(l)
	}
}

// broken ends a lease that an operator broke, as the server's value of the lock
// says. The holder may still release it, since it has the lock until then; if it
// does not, it is given up when the lease ends.
func (l *Lease) broken(value string) {
	k := &l.client.keeper
	_, by, why, _ := token.ParseBroken(value)
	e := &LostError{Reason: LostBroken, Operator: by, Why: why}
	k.mu.Lock()
	if l.state != held {
		k.mu.Unlock()
		return
	}
	l.lose(e)
	l.renewAt = never
	if !k.closed {
		k.reschedule(l)
	}
	k.mu.Unlock()
	l.tell(e)
}

// tellAll ends all contexts before it reports: a hook or a logger may be slow.
func tellAll(leases []*Lease) {
	for _, l := range leases {
		l.cancel(l.lost)
	}
	for _, l := range leases {
		l.report(l.lost)
	}
}
