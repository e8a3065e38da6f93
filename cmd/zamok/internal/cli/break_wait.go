package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// ending is the wait for holders that were asked to stop.
type ending struct {
	a       *app
	f       *breakFlags
	place   breakable
	lock    inspect.Lock
	holders []inspect.Holder // who was asked, and still had it at the last look
	left    time.Duration    // of the last of their leases
	down    outage

	began, until, toldAt time.Time
}

// await waits until the holders that were asked do not have the lock any more.
func (w *ending) await(ctx context.Context) error {
	w.down.talk, w.began = w.a.talk, time.Now()
	w.until = w.began.Add(w.left + lastLook)
	if w.f.limited {
		w.until = w.began.Add(time.Duration(w.f.wait))
	}
	if len(w.holders) == 1 {
		w.a.talk.say("asked %s to stop; waiting until it has", w.who())
	} else {
		w.a.talk.say("asked %s to stop; waiting until they have", w.who())
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	w.toldAt = w.began
	for {
		if err := w.look(ctx); err != nil || len(w.holders) == 0 {
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

// who is for whom we wait.
func (w *ending) who() string {
	if len(w.holders) == 1 {
		return holder(w.holders[0])
	}
	return counted(len(w.holders), "holder")
}

// look takes out who does not have it any more.
func (w *ending) look(ctx context.Context) error {
	now, err := w.place.read(ctx)
	if ctx.Err() != nil {
		return nil // the caller sees it, too
	}
	if refused := w.down.judge(err); refused != nil || err != nil {
		return refused
	}
	w.left = 0
	var still []inspect.Holder
	for _, h := range w.holders {
		at := slices.IndexFunc(now.Holders, func(n inspect.Holder) bool { return n.Token == h.Token })
		if at < 0 {
			w.gone(now, h)
			continue
		}
		w.left = max(w.left, now.Holders[at].Left)
		still = append(still, h)
	}
	w.holders = still
	if len(still) > 0 && time.Since(w.toldAt) >= tellEvery {
		w.toldAt = time.Now()
		who := "it still has it"
		if len(still) > 1 {
			who = w.who() + " still have it"
		}
		w.a.talk.say("%s, for %s at most", who, ago(w.left))
	}
	return nil
}

func (w *ending) gone(now inspect.Lock, h inspect.Holder) {
	next := "it is free"
	switch first := now.First(); {
	case now.Shared() && now.Held:
		next = use(now) + " held"
	case now.Held && first.Resting:
		next = "it is at rest for " + ago(now.Left)
	case now.Held:
		next = holder(first) + " has it now"
	}
	w.a.talk.say("%s no longer has %q, after %s: %s", holder(h), visible(w.lock.Title()), ago(time.Since(w.began)), next)
}

func (w *ending) tooLong() error {
	name := visible(w.lock.Title())
	if w.down.on {
		return &failure{code: exit.Unavailable, err: fmt.Errorf("%q: the holder was asked to stop, but the server does not say whether it has", name), hint: "look with `zamok show` when the server answers again"}
	}
	hint := fmt.Sprintf("it was asked, and loses the lock in %s at the latest", ago(w.left))
	if !w.f.server.quorum {
		hint += "; --now takes it away at once"
	}
	return &failure{code: exit.NotObtained, err: fmt.Errorf("%q is still held by %s after %s", name, w.who(), ago(time.Since(w.began))), hint: hint}
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
