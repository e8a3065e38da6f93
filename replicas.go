package zamok

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// With Config.WaitReplicas a grant counts when so many replicas have it, so that a
// failover to one of these keeps it. What must hold:
//
//  1. It is asked for behind the grant and by one connection: the server counts who has
//     what it had written when that connection's last command ran. So WAIT comes
//     behind a renewal, which also raises what a hand-over granted.
//  2. It is for what the server grants. Goroutines that pass a lease on among themselves
//     write nothing.
//  3. Nobody is told of a lease before. One that too few have is given back at once, and
//     the call ends: the next in line finds out for itself, and a queue of n waiters is
//     through after n times Config.WaitTimeout.

// ReplicasError says that a lock was granted and given back, because fewer replicas
// than Config.WaitReplicas had it in time. From everything that takes a lock. Nothing
// is held; on the server the lock is released within moments, and goes to the next in
// line. errors.Is(err, ErrUnavailable) holds.
type ReplicasError struct {
	Name  string        // of the lock
	Want  int           // Config.WaitReplicas
	Got   int           // how many had it
	After time.Duration // how long the server was asked to wait for them: Config.WaitTimeout
}

func (e *ReplicasError) Error() string {
	return fmt.Sprintf("zamok: lock %q not acquired: only %d of %d replicas have it after %v (see INFO replication)",
		e.Name, e.Got, e.Want, e.After)
}

// Is reports whether target is ErrUnavailable.
func (e *ReplicasError) Is(target error) bool { return target == ErrUnavailable }

var errUnconfirmed = errors.New("it was granted, and nobody told whether replicas have it")

// confirmed returns the lease when enough replicas have it; nil without an error when
// it was lost meanwhile, so that the server is to be asked again.
func (a *attempt) confirmed(ctx context.Context, l *Lease) (*Lease, error) {
	err := a.confirm(ctx, l)
	if err == nil {
		a.beginMaxHold(l)
		return l, nil
	}
	l.drop()
	a.in.lease = nil // it is no longer one that is made ready
	a.stood = ""     // the server has told us of our turn
	if errors.Is(err, ErrLost) && !a.c.isClosed() {
		// By another token: the keeper may be giving up this one, behind our back. The
		// place in the queue is that of the ticket, and stays.
		a.leave()
		a.c.abandon(a.s, a.token, a.member, "0", a.doubt)
		a.token, a.member, a.doubt = a.c.newToken(), "", settled
		return nil, nil
	}
	if errors.Is(err, ErrLost) {
		err = ErrClosed
	}
	a.doubts(false) // the server has it: it is to be given back
	return nil, err
}

// beginMaxHold begins what MaxHold bounds: one that began before could be over whenever the replicas are
// slower than that, and the lock would be taken again and again.
func (a *attempt) beginMaxHold(l *Lease) {
	if a.s.maxHold == 0 {
		return
	}
	k := &a.c.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bound(l, a.c.clock.now().bound(a.s.maxHold))
}

// confirm waits until enough replicas have what the server granted. The error is a
// *LostError when it was lost meanwhile, but not when an operator broke it: then its
// holder is told, as if that had come a moment later.
func (a *attempt) confirm(ctx context.Context, l *Lease) error {
	want, began := a.c.cfg.WaitReplicas, a.c.clock.now()
	for failures := 0; want > 0; {
		var lost *LostError
		if err := l.Err(); errors.As(err, &lost) && lost.Reason == LostBroken {
			return nil
		} else if err != nil {
			return err
		}
		sent := a.c.clock.now()
		ans, got, err := a.replicate(ctx, l)
		switch {
		case err != nil:
			a.last = nil // whoever had it has released it
			err = a.failed(ctx, err, &failures)
			if err == nil && a.c.clock.now().sub(began) >= a.c.cfg.GiveUp { // also who stood in the queue: it has the lock now
				err = a.gaveUp()
			}
			if errors.Is(err, ErrUnavailable) {
				err = fmt.Errorf("%w; %w", err, errUnconfirmed)
			}
			if err != nil {
				return err
			}
		case ans.status == "broken":
			if l.broken(ans.holder) {
				tellAll([]*Lease{l})
			}
		case ans.status != "renewed":
			return &LostError{Name: l.Name(), Fence: l.fence, Reason: LostDeleted}
		case got < want:
			return &ReplicasError{Name: l.Name(), Want: want, Got: got, After: a.c.cfg.WaitTimeout}
		default:
			return l.renewed(sent, ans, true)
		}
	}
	return nil
}

// replicate renews the lease and waits for the replicas.
func (a *attempt) replicate(ctx context.Context, l *Lease) (answer, int, error) {
	timeout := a.c.cfg.WaitTimeout
	call := l.spec.renewCall([]string{l.token, l.spec.ttlMS}, a.callLimit()+timeout)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.c.backgroundCtx, cancel)() // Close does not wait for that long
	reply, got, err := a.c.d.EvalWait(ctx, call, a.c.cfg.WaitReplicas, timeout)
	ans, err := aboutLease(answerOf(driver.Result{Reply: reply, Err: err}))
	return ans, int(got), err
}
