package zamok

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// bundle sends calls of one client that are made at the same time together: in a
// pipeline each of them costs the client library, the kernel and the server less than
// alone. What must hold:
//
//  1. Up to mostApart calls go at once, each by itself and with its own ctx, so a call
//     alone is as without this. Whoever comes while these are under way waits until one
//     of them has ended, and never for longer than gather: a server that is far away, or
//     hangs, delays nobody by more.
//  2. A pipeline has one limit, so only calls of the usual limit go together. Each ends
//     by that limit, or gather later.
//  3. Whoever leaves before its call was sent takes the call along. Whoever leaves later
//     disturbs no other call, and leaves its slices to the driver, as with a call of its
//     own. It cannot stop the call, which the library may send, or send again, until the
//     pipeline is over: over tells an abandon when that is.
//  4. A goroutine of it ends with its pipeline, and there is none when nobody waits.
//     Close waits for both: pending is counted among what is under way.
//
// One call of a script for several locks was tried and is not faster than a pipeline:
// docs/performance.md.
type bundle struct {
	client *Client

	mu      sync.Mutex
	flying  int                      // calls that went by themselves, and pipelines
	waiting []*bundled               // in the order in which they came
	pending bool                     // timer is set, for those who wait
	left    map[string]chan struct{} // by token: closed when the call is over that its caller left
	timer   *time.Timer
	idle    sync.Pool // of *bundled
}

const (
	// mostApart is how many calls are under way before others wait for them. With fewer
	// the third of three callers would wait for the first one's trip, and a pipeline of
	// two costs more than they do apart; with more, those of many callers are short.
	mostApart = 4
	// mostBundled bounds a pipeline, so that the first of its calls does not wait for
	// the replies to very many.
	mostBundled = 16
)

// bundled is a call that waits to go with others.
type bundled struct {
	call   driver.Call
	result driver.Result
	alone  bool          // it is to go by itself after all, as nobody else came
	left   chan struct{} // the caller has left; see bundle
	done   chan struct{} // one slot: the result is there, or the call is to go
}

// eval is Eval of the driver. A quorum gathers for each of its members, and a cluster's
// pipelines would have to be parted by server.
func (b *bundle) eval(ctx context.Context, call driver.Call) (any, error) {
	c := b.client
	if call.Limit != callLimit || c.quorum != nil || c.d.Clustered() || ctx.Err() != nil {
		return c.d.Eval(ctx, call)
	}
	w := b.wait(call)
	if w == nil {
		defer b.landed() // also when a hook panics
		return c.d.Eval(ctx, call)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if !b.quits(w) {
			return nil, fmt.Errorf("no answer before the context ended: %w", ctx.Err())
		}
	}
	r, alone := w.result, w.alone
	*w = bundled{done: w.done}
	b.idle.Put(w)
	if alone {
		defer b.landed()
		return c.d.Eval(ctx, call)
	}
	return r.Reply, r.Err
}

// wait has the call wait for those under way; nil when it is to go by itself.
func (b *bundle) wait(call driver.Call) *bundled {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flying < mostApart || !b.pending && !b.client.enter() {
		b.flying++
		return nil
	}
	if !b.pending {
		b.pending = true
		if b.timer == nil {
			b.timer = time.AfterFunc(gather, b.gathered)
		} else {
			b.timer.Reset(gather)
		}
	}
	w, _ := b.idle.Get().(*bundled)
	if w == nil {
		w = &bundled{done: make(chan struct{}, 1)}
	}
	w.call = call
	b.waiting = append(b.waiting, w)
	return w
}

// quits takes a call out whose caller leaves; true when its result is there already,
// since an outcome that is known should not be thrown away. One that was sent is not
// used again: its pipeline will still tell it.
func (b *bundle) quits(w *bundled) (done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		return false
	}
	select {
	case <-w.done:
		return true
	default:
	}
	w.left = make(chan struct{})
	if b.left == nil {
		b.left = make(map[string]chan struct{})
	}
	for token := range tokens(w.call) {
		b.left[token] = w.left
	}
	return false
}

// tokens are those of a call: acquire has one, resume two, several locks as many.
func tokens(call driver.Call) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, arg := range call.Args {
			if strings.HasPrefix(arg, tokenMark) && !yield(arg) {
				return
			}
		}
	}
}

// over tells when a call with that token is over that its caller left while it was under
// way; nil when there is none.
func (b *bundle) over(token string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left[token]
}

// landed ends a call that went by itself, or a pipeline.
func (b *bundle) landed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	b.flush()
}

// gathered is when nobody waits any longer.
func (b *bundle) gathered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flush()
}

// flush sends what waits. mu is held.
func (b *bundle) flush() {
	if !b.pending {
		return
	}
	c := b.client
	b.timer.Stop()
	if len(b.waiting) == 1 { // a pipeline, and the goroutine for it, would cost more
		b.flying++
		b.waiting[0].alone = true
		b.waiting[0].done <- struct{}{}
		b.waiting = nil
	}
	for list := range slices.Chunk(b.waiting, mostBundled) {
		b.flying++
		c.background.Go(func() { b.send(list) })
	}
	b.waiting, b.pending = nil, false
	c.leave()
}

// send sends calls as one pipeline. Its ctx has no values, as they have none in common.
func (b *bundle) send(list []*bundled) {
	calls := make([]driver.Call, len(list))
	for i, w := range list {
		calls[i] = w.call
	}
	results := b.client.d.EvalAll(b.client.backgroundCtx, calls)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range list {
		if w.left != nil {
			b.forget(w)
			continue
		}
		w.result = results[i]
		w.done <- struct{}{} // from now on it is its caller's, who uses it again
	}
	b.flying--
	b.flush()
}

// forget tells an abandon that a call is over whose caller has left. mu is held.
func (b *bundle) forget(w *bundled) {
	close(w.left)
	for token := range tokens(w.call) {
		if b.left[token] == w.left {
			delete(b.left, token)
		}
	}
}
