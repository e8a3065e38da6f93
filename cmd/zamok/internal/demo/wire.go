package demo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// wire is one actor's way to the server. It can be cut, which is what others see
// of a crash, or held up: then what is sent arrives late, perhaps long after the
// sender has given up, as after a pause of the process or in a full network.
type wire struct {
	to driver.Driver

	mu    sync.Mutex
	state state
	late  []*letter // held up or lost, in order
	asked int
}

type state int

const (
	open state = iota
	cut
	slow
)

// letter is a call that has not arrived.
type letter struct {
	call  driver.Call
	reply chan driver.Result
}

func newWire(to driver.Driver) *wire { return &wire{to: to} }

var errReset = errors.New("connection reset")

func (w *wire) set(s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
}

// cut loses everything from now on, delay keeps it back.
func (w *wire) cut()   { w.set(cut) }
func (w *wire) delay() { w.set(slow) }

// heal makes the wire work again; what was lost or is held up fails.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		l.reply <- driver.Result{Err: errReset}
	}
	w.state, w.late = open, nil
}

// deliver lets everything that was kept back arrive, waits until the server has
// dealt with it, and lets pass what comes. It returns how many calls arrived.
func (w *wire) deliver() int {
	w.mu.Lock()
	letters := w.late
	w.late = nil
	w.mu.Unlock()
	for _, l := range letters {
		call := l.call
		call.Limit = 5 * time.Second
		reply, err := w.to.Eval(context.Background(), call)
		l.reply <- driver.Result{Reply: reply, Err: err}
	}
	w.set(open)
	return len(letters)
}

// asks returns how often the actor asked for a lock so far.
func (w *wire) asks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *wire) now() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Eval implements driver.Driver.
func (w *wire) Eval(ctx context.Context, call driver.Call) (any, error) {
	w.mu.Lock()
	if call.Script.Name() == "acquire" {
		w.asked++
	}
	now := w.state
	l := &letter{call: call, reply: make(chan driver.Result, 1)}
	l.call.Keys, l.call.Args = slices.Clone(call.Keys), slices.Clone(call.Args)
	if now != open {
		w.late = append(w.late, l)
	}
	w.mu.Unlock()
	if now == open {
		return w.to.Eval(ctx, call)
	}
	timer := time.NewTimer(call.Limit)
	defer timer.Stop()
	select {
	case r := <-l.reply:
		return r.Reply, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, context.DeadlineExceeded
	}
}

// EvalWait implements driver.Driver. The server of a demonstration has no replicas.
func (w *wire) EvalWait(ctx context.Context, call driver.Call, _ int, _ time.Duration) (any, int64, error) {
	reply, err := w.Eval(ctx, call)
	return reply, 0, err
}

// Clustered implements driver.Driver.
func (w *wire) Clustered() bool { return w.to.Clustered() }

// EvalAll implements driver.Driver.
func (w *wire) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { results[i].Reply, results[i].Err = w.Eval(ctx, calls[i]) })
	}
	all.Wait()
	return results
}

// Do implements driver.Driver.
func (w *wire) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	if w.now() == open {
		return w.to.Do(ctx, limit, args...)
	}
	return nil, context.DeadlineExceeded
}

// Subscribe implements driver.Driver. Messages are lost on a wire that is not
// open: the client must not depend on them.
func (w *wire) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	if w.now() != open {
		return nil, context.DeadlineExceeded
	}
	return w.to.Subscribe(ctx, limit, channel, func(e driver.Event) {
		if e.Kind != driver.Message || w.now() == open {
			handle(e)
		}
	})
}
