package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/once"
)

// mutex holds a mutex, and writes to its registers. Some holds are over at once, so that
// the next one of this client gets what is left of the turn; and some are bounded.
func (r *routine) mutex(ctx context.Context, name string) {
	w := Want{Kind: history.Mutex, Name: name}
	switch {
	case !r.in(r.plan.Bounded):
	case r.in(500):
		w.Least = minHold
	default:
		w.Most = maxHold
	}
	empty := w.Most == 0 && r.in(500)
	r.with(ctx, w, func(l *held) {
		if !empty {
			l.use(ctx, 2*w.Most+r.span())
		}
		l.release(ctx)
	})
}

const (
	minHold = 20 * time.Millisecond  // for so long nobody else gets what was taken so
	maxHold = 100 * time.Millisecond // after which a holder loses what was taken so
)

// use holds the lease, and writes before and after.
func (h *held) use(ctx context.Context, span time.Duration) {
	h.write(ctx)
	h.hold(ctx, span)
	h.write(ctx)
}

// readWrite reads, writes, or writes and goes on as a reader.
func (r *routine) readWrite(ctx context.Context, name string) {
	w := Want{Kind: history.Reader, Name: name}
	if r.in(300) {
		w.Kind = history.Writer
	}
	r.with(ctx, w, func(l *held) {
		l.use(ctx, r.span())
		if d, ok := l.Lease.(lease); ok && w.Kind == history.Writer && r.in(300) {
			l.did(ctx, l.event(history.Downgrade), func() error { return d.Downgrade(ctx) })
			l.hold(ctx, r.span())
		}
		l.release(ctx)
	})
}

// permits holds one of few permits, for longer than other things are held, so that there
// are more who want one.
func (r *routine) permits(ctx context.Context) {
	i := r.few()
	r.with(ctx, Want{Kind: history.Permit, Name: r.name(Permits, i), Limit: 2 + i%2}, func(l *held) {
		l.use(ctx, 4*r.span())
		l.release(ctx)
	})
}

// several takes two mutexes of three, in some order.
func (r *routine) several(ctx context.Context) {
	names := make([]string, 2)
	for i, n := range r.rand.Perm(3)[:2] {
		names[i] = r.name(Several, n)
	}
	ctx, cancel := context.WithTimeout(ctx, 4*r.plan.TTL)
	defer cancel()
	c := r.engine.(*client)
	e := history.Event{Client: r.client, Op: history.Try, Kind: history.Mutex, Call: history.Now()}
	ls, err := c.Multi(names, nil).Lock(ctx)
	if err != nil {
		e.Name = fmt.Sprint(names)
		r.taken(ctx, e, nil, err)
		return
	}
	var all []*held
	for _, name := range names {
		one := e
		one.Name = name
		all = append(all, r.taken(ctx, one, lease{Lease: ls.Lease(name)}, nil))
	}
	span := r.span()
	for _, l := range all {
		l.use(ctx, span/2)
	}
	var ends []history.Event
	for _, l := range all {
		end := l.event(history.Release)
		r.log.Begin(&end)
		ends = append(ends, end)
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), 2*r.plan.TTL)
	defer end()
	outcome := outcomeOf(ctx, ls.Release(ctx), false)
	if outcome == history.Lost {
		outcome = history.Unknown // one was lost, and the other one may have been released
	}
	for _, end := range ends {
		end.Outcome, end.Return = outcome, history.Now()
		r.log.End(&end)
	}
}

// onceEvery is for how long a thing that is done once is asked for.
const onceEvery = 500 * time.Millisecond

// once does a thing that others want done at the same time.
func (r *routine) once(ctx context.Context) {
	kind := history.Retry
	if r.in(500) {
		kind = history.GiveUp
	}
	ctx, cancel := context.WithTimeout(ctx, 4*r.plan.TTL)
	defer cancel()
	key := fmt.Sprintf("%s-%d{%d}", kind, history.Now()/int64(onceEvery), r.few())
	e := history.Event{Client: r.client, Op: history.Once, Kind: kind, Name: key, Call: history.Now()}
	value, err := r.engine.(Doer).Once(ctx, kind, key, func(ctx context.Context, until time.Time) (int64, error) {
		return r.doOnce(ctx, history.Event{Client: r.client, Op: history.Run, Kind: kind, Name: key, Until: history.At(until)})
	})
	switch e.Outcome = history.OK; {
	case errors.As(err, new(*once.InterruptedError)), errors.As(err, new(*once.FailedError)):
		e.Outcome, e.Text = history.Refused, err.Error()
	case err != nil:
		e.Outcome, e.Text = history.Unknown, err.Error()
	}
	e.Value = value
	r.log.End(&e)
}

// doOnce is the thing.
func (r *routine) doOnce(ctx context.Context, run history.Event) (int64, error) {
	run.Value = r.rand.Int64()
	r.log.Begin(&run)
	pause(ctx, r.span())
	if r.in(r.plan.Crash) {
		(&held{routine: r}).crash()
	}
	err := context.Cause(ctx)
	if err == nil && r.in(200) {
		err = errInterrupted
	}
	if run.Outcome = history.OK; err != nil {
		run.Outcome, run.Text = history.Refused, err.Error()
	}
	r.log.End(&run)
	return run.Value, err
}
