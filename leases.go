package zamok

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Leases is several held locks. It is made by Multi.Lock and Multi.TryLock, and safe
// for use by many goroutines. Each lock has an ordinary lease of its own, with a token
// and a fence, which is renewed by itself; all are of use only together.
type Leases struct {
	all []*Lease // in the order in which they were taken; each was taken under those before it
	ctx leasesCtx
}

// leasesCtx is the context of the last lease, which is under all others, and carries
// the leases.
type leasesCtx struct {
	context.Context
	leases *Leases
}

// leasesOf asks a context for the innermost Leases.
type leasesOf struct{}

func (c *leasesCtx) Value(key any) any {
	if _, ok := key.(leasesOf); ok {
		return c.leases
	}
	return c.Context.Value(key)
}

func newLeases(all []*Lease) *Leases {
	h := &Leases{all: all}
	h.ctx = leasesCtx{all[len(all)-1].Context(), h}
	return h
}

// LeasesFrom returns the leases under which ctx runs: the innermost that were taken
// together, in a function called by Multi.Do or Multi.TryDo or with the context of a
// Leases. It is nil when there are none.
func LeasesFrom(ctx context.Context) *Leases {
	h, _ := ctx.Value(leasesOf{}).(*Leases)
	return h
}

// Lease returns the lease of the lock of that name: for its fence, its token, and
// Lease.Run. It is nil when the name is none of these. Whoever releases or detaches it
// alone ends the context of all.
func (h *Leases) Lease(name string) *Lease {
	for _, l := range h.all {
		if l.Name() == name {
			return l
		}
	}
	return nil
}

// Context returns the context of all the leases. It carries the values of the context
// that was given to Lock, and it ends when the first of them does, with the cause that
// Lease.Context says; a *LostError has the name of that lock. The other locks are then
// renewed no more, and stay until Release or their TTL.
func (h *Leases) Context() context.Context { return &h.ctx }

// Deadline returns the time at which the first of the leases may end on the server if
// it is not renewed until then: see Lease.Deadline.
func (h *Leases) Deadline() time.Time {
	first := h.all[0].Deadline()
	for _, l := range h.all[1:] {
		if d := l.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// Err returns nil while all are held, by the clock and not by what a timer has told;
// then a *LostError of one that is lost, or ErrReleased. It asks nobody: see Check.
func (h *Leases) Err() error {
	var over error
	for _, l := range h.all {
		err := l.Err()
		if errors.Is(err, ErrLost) {
			return err
		}
		if err != nil {
			over = err
		}
	}
	return over
}

// Check asks the server whether all are still held. It returns nil, or the errors of
// Lease.Check, joined.
func (h *Leases) Check(ctx context.Context) error {
	return h.each(func(_ int, l *Lease) error { return l.Check(ctx) })
}

// Extend raises what is left of each lease to at least d: see Lease.Extend. Errors are
// joined; those without one are extended.
func (h *Leases) Extend(ctx context.Context, d time.Duration) error {
	if err := checkTTL("duration", d); err != nil {
		return err
	}
	return h.each(func(_ int, l *Lease) error { return l.Extend(ctx, d) })
}

// Release gives all locks back, in one request to each server; each goes to its first
// waiter. It is Lease.Release of each, also in what ctx bounds and in its errors, which
// are joined: when some were lost, the others are released all the same. It returns
// ErrReleased when all were released or detached before.
func (h *Leases) Release(ctx context.Context) error {
	over := make([]error, len(h.all))
	parts := make([]parting, len(h.all))
	first := make([]*driver.Result, len(h.all))
	var asked []int // whose first try is in calls
	var calls []driver.Call
	for i, l := range h.all {
		if parts[i], over[i] = l.part(); over[i] == nil && parts[i].lost == nil && parts[i].next == nil {
			limit := min(l.releaseTime(ctx, parts[i].at), callLimit)
			asked, calls = append(asked, i), append(calls, l.releaseCall(nil, limit))
		}
	}
	if !slices.Contains(over, nil) {
		return h.Err()
	}
	if len(calls) > 0 {
		for n, r := range h.all[0].client.d.EvalAll(context.WithoutCancel(ctx), calls) {
			first[asked[n]] = &r
		}
	}
	return h.each(func(i int, l *Lease) error {
		if over[i] != nil {
			return nil // the caller knows: it was released alone, or lost and released
		}
		return l.giveBack(ctx, parts[i], first[i])
	})
}

// each does something for all leases at once, and joins the errors.
func (h *Leases) each(do func(i int, l *Lease) error) error {
	errs := make([]error, len(h.all))
	var done sync.WaitGroup
	for i, l := range h.all {
		done.Go(func() { errs[i] = do(i, l) })
	}
	done.Wait()
	var distinct []error
	for _, err := range errs {
		if err != nil && !slices.Contains(distinct, err) {
			distinct = append(distinct, err)
		}
	}
	if len(distinct) == 1 {
		return distinct[0]
	}
	return errors.Join(distinct...)
}
