package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds keeps calls into a client library within their limits, for drivers to
// use. A library cannot be trusted with that: go-redis does not look at a
// context while a command is in flight, and rueidis does not while it connects.
// The zero value is ready for use.
type Bounds struct {
	waiters sync.Pool // *waiter
}

// waiter is what a call needs to wait. It is used again only after an orderly
// return: an abandoned call may still send to it.
type waiter struct {
	timer    *time.Timer
	finished chan struct{} // one slot, so that an abandoned call does not block
}

// Call runs f, which calls the library, and returns what f returned. When ctx
// ends, or the limit passes first, it returns an error that wraps ctx.Err() or
// context.DeadlineExceeded at once, and f goes on in a goroutine of its own
// until the library lets it: the context that f was given has ended by then, so
// that the library repeats nothing and waits for nothing new.
//
// That context carries the values of ctx. It has no deadline of its own on
// purpose: libraries answer a deadline by closing a connection that may be
// shared with others, and cutting ours short is not their concern.
func (b *Bounds) Call(ctx context.Context, limit time.Duration, f func(context.Context) (any, error)) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, errLimit(limit)
	}
	w := b.waiter(limit)
	c := &boundCall{Context: ctx, done: make(chan struct{}), finished: w.finished}
	go c.run(f)
	var gaveUp error
	select {
	case <-w.finished:
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-w.timer.C:
		gaveUp = context.DeadlineExceeded
	}
	w.timer.Stop() // since Go 1.23 nothing is left in its channel after that
	if gaveUp != nil && !w.justFinished() {
		c.end(gaveUp)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no answer before the context ended: %w", gaveUp)
		}
		return nil, errLimit(limit)
	}
	b.waiters.Put(w)
	return c.reply, foreign(ctx, c.err)
}

// CallAll is Call for pipelines: f runs some calls as one and returns a result for
// each. server returns which of several servers a call goes to, a comparable value,
// so that one that hangs holds up no call to another; nil where there is but one.
// It must not wait.
//
// One server answers one pipeline, so all calls to it end together: with their
// replies, or when the longest of their limits passes. A call that was answered
// later than its own limit still has its reply, which tells more than an error
// would.
func (b *Bounds) CallAll(ctx context.Context, calls []Call, server func(Call) any, f func(context.Context, []Call) []Result) []Result {
	if len(calls) == 0 {
		return nil
	}
	parts := make(map[any][]int)
	if server != nil {
		for i, call := range calls {
			to := server(call)
			parts[to] = append(parts[to], i)
		}
	}
	if len(parts) < 2 {
		return b.pipeline(ctx, calls, f)
	}
	results := make([]Result, len(calls))
	var all sync.WaitGroup
	for _, indexes := range parts {
		all.Go(func() {
			part := make([]Call, len(indexes))
			for n, i := range indexes {
				part[n] = calls[i]
			}
			for n, r := range b.pipeline(ctx, part, f) {
				results[indexes[n]] = r
			}
		})
	}
	all.Wait()
	return results
}

// pipeline is CallAll for one server.
func (b *Bounds) pipeline(ctx context.Context, calls []Call, f func(context.Context, []Call) []Result) []Result {
	var limit time.Duration
	for _, call := range calls {
		limit = max(limit, call.Limit)
	}
	// f's slice is its own: an abandoned pipeline may still write to it.
	reply, err := b.Call(ctx, limit, func(ctx context.Context) (any, error) { return f(ctx, calls), nil })
	if err == nil {
		return reply.([]Result)
	}
	results := make([]Result, len(calls))
	for i := range results {
		results[i].Err = err
	}
	return results
}

// foreign hides that somebody else's context ended, such as that of a dial
// which another call began: the caller must not take it for its own.
func foreign(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return fmt.Errorf("client library: %v", err)
	}
	return err
}

func errLimit(limit time.Duration) error {
	return fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded)
}

func (b *Bounds) waiter(limit time.Duration) *waiter {
	if w, ok := b.waiters.Get().(*waiter); ok {
		w.timer.Reset(limit)
		return w
	}
	return &waiter{timer: time.NewTimer(limit), finished: make(chan struct{}, 1)}
}

// justFinished is for when an answer and the limit came in the same moment: an
// outcome that is known should not be thrown away.
func (w *waiter) justFinished() bool {
	select {
	case <-w.finished:
		return true
	default:
		return false
	}
}

// boundCall is one call and the context that the library is given. It is never
// used again, because hooks may keep that context.
//
// A context of the standard library would do the same at a higher price; the
// parent's end need not be handed on here, since Call watches it.
type boundCall struct {
	context.Context // the caller's: its values

	done     chan struct{} // closed by end
	ended    error         // set before done is closed
	finished chan<- struct{}

	reply any // set before finished is sent to
	err   error
}

func (c *boundCall) run(f func(context.Context) (any, error)) {
	c.reply, c.err = f(c)
	c.finished <- struct{}{}
}

// end ends the library's context. What the call returns later is not read.
func (c *boundCall) end(err error) {
	c.ended = err
	close(c.done)
}

// Deadline hides the caller's deadline from the library; Call watches it.
func (c *boundCall) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *boundCall) Done() <-chan struct{} { return c.done }

func (c *boundCall) Err() error {
	select {
	case <-c.done:
		return c.ended
	default:
		return nil
	}
}
