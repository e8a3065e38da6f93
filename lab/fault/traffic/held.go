package traffic

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

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

// take takes a lease in one of all ways. nil: there is none.
func (r *routine) take(ctx context.Context, w Want, alone bool) *held {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	way := r.rand.IntN(ways)
	w.Wait = way >= tried
	switch short := r.about(r.plan.TTL / 4); {
	case way < tried:
	case way < tried+limited:
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, short)
		defer end()
	case way < tried+limited+cancelled:
		defer time.AfterFunc(short, cancel).Stop()
	}
	var queued atomic.Int64
	if alone && w.Wait {
		w.Queued = func() { queued.CompareAndSwap(0, history.Now()) }
	}
	e := history.Event{Client: r.client, Op: history.Try, Kind: w.Kind, Name: w.Name, Limit: w.Limit, TTL: int64(r.plan.TTL)}
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
	e.Return = history.Now()
	if e.Outcome = outcomeOf(ctx, err, true); err != nil {
		e.Text = err.Error()
		r.log.End(&e)
		return nil
	}
	e.Lease = fmt.Sprintf("%s/%d", r.plan.Proc, r.leases.Add(1))
	e.Fence, e.Until = l.Fence(), history.At(l.Deadline())
	if c, ok := r.engine.(*client); ok {
		e.Handed = c.wasHanded(e.Fence)
	}
	r.log.End(&e)
	return &held{Lease: l, routine: r, took: e}
}

// event is one of this lease.
func (h *held) event(op history.Op) history.Event {
	return history.Event{Client: h.client, Op: op, Name: h.took.Name, Lease: h.took.Lease}
}

// did calls f between the two lines of an event and writes how it went.
func (h *held) did(ctx context.Context, e history.Event, f func() error) history.Outcome {
	h.log.Begin(&e)
	err := f()
	e.Return = history.Now()
	if e.Outcome = outcomeOf(ctx, err, false); err != nil {
		e.Text = err.Error()
	} else if e.Op == history.Renew {
		e.Until = history.At(h.Deadline())
	}
	h.log.End(&e)
	return e.Outcome
}

// look asks the lease whether it still holds.
func (h *held) look() bool {
	e := h.event(history.Look)
	e.Call = history.Now()
	err := h.Err()
	e.Return = history.Now()
	if e.Outcome = history.Lost; err == nil {
		e.Outcome, e.Until = history.OK, history.At(h.Deadline())
	}
	h.log.End(&e)
	return err == nil
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
			h.did(ctx, h.event(history.Renew), func() error { return h.Extend(ctx, h.plan.TTL) })
		}
		select {
		case <-h.Context().Done():
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
