package once

import (
	"context"
	"time"

	"github.com/zamok-go/zamok"
)

// hold is a lease that lasts until its function has returned. The lease of
// Mutex.Lock is no longer renewed when the caller's ctx ends; a function that needs
// longer to stop would then have a successor beside it, and its end could not be
// stored.
type hold struct {
	lease *zamok.Lease
	end   context.CancelCauseFunc
}

// take acquires a lock. ctx ends the waiting, and not the lease.
func take(ctx context.Context, acquire func(context.Context) (*zamok.Lease, error)) (*hold, error) {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	lease, err := acquire(&waitCtx{Context: own, caller: ctx})
	stop() // too late if ctx has ended: then the lease's context has too, and leave releases it
	if err != nil {
		end(nil)
		return nil, err
	}
	return &hold{lease: lease, end: end}, nil
}

// leave releases the lock, whatever came of it. The error is a loss, or tells of
// a release that goes on behind.
func (h *hold) leave() error {
	err := h.lease.Release(context.Background())
	h.end(nil)
	return err
}

// work returns the context for the function: it ends with the lease or with the
// caller's context, whichever comes first, with the cause of that.
func (h *hold) work(ctx context.Context) (work context.Context, stop func()) {
	both, cancel := context.WithCancelCause(h.lease.Context())
	forget := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return &workCtx{Context: both, caller: ctx, lease: h.lease}, func() {
		forget()
		cancel(nil)
	}
}

// waitCtx ends as the caller's context does, so that errors name the caller's
// reason, a deadline for example.
type waitCtx struct {
	context.Context //nolint:containedctx // it is a context itself
	caller          context.Context
}

func (c *waitCtx) Err() error {
	err := c.Context.Err()
	if e := c.caller.Err(); err != nil && e != nil {
		return e
	}
	return err
}

// workCtx has the caller's deadline. Its Err looks at the lease's clock, and sees to it
// that a context whose lease is over has ended: see Lease.Context.
type workCtx struct {
	context.Context //nolint:containedctx // it is a context itself
	caller          context.Context
	lease           *zamok.Lease
}

func (c *workCtx) Deadline() (time.Time, bool) { return c.caller.Deadline() }

func (c *workCtx) Err() error {
	_ = c.lease.Context().Err()
	lost := c.lease.Err()
	err := c.Context.Err()
	if e := c.caller.Err(); err != nil && e != nil && lost == nil {
		return e
	}
	return err
}
