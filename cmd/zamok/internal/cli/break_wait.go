package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

const (
	lookEvery = 200 * time.Millisecond // at the lock, while its holder is to stop
	tellEvery = 5 * time.Second        // how it goes
	// lastLook is how much longer than the lease the wait lasts: for clocks that
	// differ in their pace, and a server that is away for a moment.
	lastLook = 5 * time.Second
)

// awaitEnd waits until the holder that was asked does not have the lock any more.
func (a *app) awaitEnd(ctx context.Context, f *breakFlags, in *inspect.Inspector, l inspect.Lock, b inspect.Broken) error {
	w := &ending{a: a, f: f, in: in, lock: l, began: time.Now(), left: b.Left, down: outage{talk: a.talk}}
	w.until = w.began.Add(b.Left + lastLook)
	if f.limited {
		w.until = w.began.Add(time.Duration(f.wait))
	}
	a.talk.say("asked %s to stop; waiting until it has", holder(l))
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	w.toldAt = w.began
	for {
		if over, err := w.look(ctx); over || err != nil {
			return err
		}
		if !time.Now().Before(w.until) {
			return w.tooLong()
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return w.stopped(ctx)
		}
	}
}

// ending is the wait for a holder that was asked to stop.
type ending struct {
	a    *app
	f    *breakFlags
	in   *inspect.Inspector
	lock inspect.Lock
	down outage

	began, until, toldAt time.Time
	left                 time.Duration
}

// look says whether the wait is over.
func (w *ending) look(ctx context.Context) (over bool, err error) {
	now, err := w.f.lock.read(ctx, w.in)
	if ctx.Err() != nil {
		return false, nil // the caller sees it, too
	}
	if refused := w.down.judge(err); refused != nil || err != nil {
		return false, refused
	}
	w.left = now.Left
	if !now.Held || now.Holder.Token != w.lock.Holder.Token {
		w.gone(now)
		return true, nil
	}
	if time.Since(w.toldAt) >= tellEvery {
		w.toldAt = time.Now()
		w.a.talk.say("it still has it, for %s at most", ago(now.Left))
	}
	return false, nil
}

func (w *ending) gone(now inspect.Lock) {
	next := "it is free"
	switch {
	case now.Held && now.Holder.Resting:
		next = "it is at rest for " + ago(now.Left)
	case now.Held:
		next = holder(now) + " has it now"
	}
	w.a.talk.say("%s no longer has %q, after %s: %s", holder(w.lock), visible(w.lock.Name), ago(time.Since(w.began)), next)
}

func (w *ending) tooLong() error {
	name := visible(w.lock.Name)
	if w.down.on {
		return &failure{code: exit.Unavailable, err: fmt.Errorf("%q: the holder was asked to stop, but the server does not say whether it has", name), hint: "look with `zamok show` when the server answers again"}
	}
	after := ago(time.Since(w.began))
	return &failure{
		code: exit.NotObtained, err: fmt.Errorf("%q is still held by %s after %s", name, holder(w.lock), after),
		hint: fmt.Sprintf("it was asked, and loses the lock in %s at the latest; --now takes it away at once", ago(w.left)),
	}
}

// stopped says that what was asked stays asked.
func (w *ending) stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	var signal *interrupted
	if !errors.As(cause, &signal) {
		return cause
	}
	return &failure{code: signal.code(), err: fmt.Errorf("stopped waiting: %w; the holder was asked to stop all the same", signal)}
}
