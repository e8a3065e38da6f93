package traffic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// held is a lease that a routine has.
type held struct {
	Lease
	*routine
	took history.Event
}

// How a lease is asked for, in parts of all.
const (
	tried     = 2 // without waiting
	limited   = 2 // for a short time
	cancelled = 1 // given up in the middle
	ways      = 10
)

// with takes a lease in one of all ways and has f use it. The context that it was taken
// under lasts until f has returned, or until the time for which it was waited for is over.
func (r *routine) with(ctx context.Context, w Want, f func(*held)) {
	way, short := r.rand.IntN(ways), r.about(r.plan.TTL/4)
	under, end := context.WithCancel(ctx)
	if way >= tried && way < tried+limited {
		end()
		under, end = context.WithTimeout(ctx, short)
	}
	defer end()
	givesUp := func() bool { return true }
	if way >= tried+limited && way < tried+limited+cancelled {
		givesUp = time.AfterFunc(short, end).Stop
	}
	w.Wait = way >= tried
	l := r.take(under, w)
	if givesUp(); l != nil {
		f(l)
	}
}

// take takes a lease. nil: there is none.
func (r *routine) take(ctx context.Context, w Want) *held {
	var queued atomic.Int64
	w.Queued = func() { queued.CompareAndSwap(0, history.Now()) }
	e := history.Event{
		Client: r.client, Op: history.Try, Kind: w.Kind, Name: w.Name, Limit: w.Limit,
		TTL: int64(r.plan.TTL), Least: int64(w.Least), Most: int64(w.Most),
	}
	if w.Wait {
		e.Op = history.Acquire
	}
	r.log.Begin(&e)
	l, err := r.engine.Take(ctx, w)
	e.Queued = queued.Load()
	return r.taken(ctx, e, l, err)
}

// taken writes what came of asking for a lease.
func (r *routine) taken(ctx context.Context, e history.Event, l Lease, err error) *held {
	if e.Outcome = outcomeOf(ctx, err, true); err != nil {
		e.Text = err.Error()
		r.log.End(&e)
		return nil
	}
	e.Lease = fmt.Sprintf("%s/%d", r.plan.Proc, r.leases.Add(1))
	deadline := l.Deadline()
	e.Return = history.Now()
	e.Fence, e.Until = l.Fence(), history.At(deadline)
	if own, ok := l.(lease); ok {
		e.Handed, e.Passed = own.handed, own.passed
	}
	r.log.End(&e)
	h := &held{Lease: l, routine: r, took: e}
	h.watch()
	return h
}

// watch writes when the lease's context ends.
func (h *held) watch() {
	ctx := h.Context()
	h.watched.Add(1)
	context.AfterFunc(ctx, func() {
		defer h.watched.Done()
		e := h.event(history.Ended)
		e.Call = history.Now()
		e.Return = e.Call
		cause := context.Cause(ctx)
		switch {
		case errors.Is(cause, zamok.ErrReleased):
			e.Outcome = history.OK
		case errors.Is(cause, zamok.ErrLost):
			e.Outcome, e.Reason = history.Lost, reason(cause)
		default:
			e.Outcome = history.Cancelled
		}
		e.Text, e.Until = cause.Error(), history.At(h.Deadline())
		h.log.End(&e)
	})
}

// event is one of this lease.
func (h *held) event(op history.Op) history.Event {
	return history.Event{Client: h.client, Op: op, Name: h.took.Name, Lease: h.took.Lease}
}

// did calls f between the two lines of an event and writes how it went.
func (h *held) did(ctx context.Context, e history.Event, f func() error) history.Outcome {
	h.log.Begin(&e)
	err := f()
	deadline := h.Deadline()
	e.Return = history.Now()
	if e.Outcome = outcomeOf(ctx, err, false); err != nil {
		e.Text, e.Reason = err.Error(), reason(err)
	} else if e.Op == history.Renew {
		e.Until = history.At(deadline)
	}
	h.log.End(&e)
	return e.Outcome
}

// look asks the lease whether it still holds. If it does not, its context is waited for,
// which ends at once; what is done next would end it too.
func (h *held) look() bool {
	const atOnce = time.Second
	e := h.event(history.Look)
	e.Call = history.Now()
	err := h.Err()
	deadline := h.Deadline()
	e.Return = history.Now()
	if err == nil {
		e.Outcome, e.Until = history.OK, history.At(deadline)
		h.log.End(&e)
		return true
	}
	e.Outcome, e.Reason = history.Lost, reason(err)
	h.log.End(&e)
	select {
	case <-h.Context().Done():
	case <-time.After(atOnce):
	}
	return false
}

// hold holds the lease for a time, as long as it lasts, and looks before all that it
// does.
func (h *held) hold(ctx context.Context, long time.Duration) {
	looks := 4 + 10*long/h.plan.TTL // a loss is told between two renewals, and is to be seen before
	for range looks {
		if !h.look() {
			return
		}
		switch {
		case h.in(h.plan.Crash):
			h.crash()
		case h.in(h.plan.Extend):
			e := h.event(history.Renew)
			e.TTL = int64(h.plan.TTL)
			h.did(ctx, e, func() error { return h.Extend(ctx, h.plan.TTL) })
		}
		select {
		case <-h.Context().Done():
			h.look()
			return
		case <-ctx.Done():
			return
		case <-time.After(long / looks):
		}
	}
	h.look()
}

// release gives the lease back, also when ctx has ended.
func (h *held) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*h.plan.TTL)
	defer cancel()
	h.did(ctx, h.event(history.Release), func() error { return h.Release(ctx) })
}

// crash is the end of the process, as by kill -9, with the lease. Somebody may get the
// token that it leaves.
func (h *held) crash() {
	if h.took.Kind == history.Mutex && h.in(500) {
		h.leaveToken()
	}
	h.log.Fault(history.Fault{Kind: "crash", Target: h.plan.Proc, Kills: h.plan.Proc, From: history.Now(), Till: history.Now()})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
