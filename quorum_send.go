package zamok

import (
	"context"
	"slices"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// request is what one caller has for a member.
type request struct {
	ctx   context.Context //nolint:containedctx // of one request
	calls []driver.Call
	done  func([]driver.Result)
}

// gather is how long requests wait for those under way, to go together: in a pipeline
// each costs a member and us less. So a member that answers at once is sent one at a
// time, and hears the release of a token after the vote for it.
const gather = time.Millisecond

// send has the member run the calls, and then done, behind.
func (m *member) send(r request) {
	if len(r.calls) != 1 || r.calls[0].Limit != callLimit { // with others it would have their limit
		m.q.goes(func() { r.done(m.evalAll(r.ctx, r.calls)) })
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, r)
	switch {
	case m.sending == 0:
		m.flush()
	case !m.gathers:
		m.gathers = true
		time.AfterFunc(gather, m.gathered)
	}
}

// gathered is when nothing waits any longer.
func (m *member) gathered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gathers = false
	m.flush()
}

// flush sends what waits. mu is held.
func (m *member) flush() {
	for queue := range slices.Chunk(m.queue, batchSize) {
		m.sending++
		m.q.goes(func() { m.deliver(queue) })
	}
	m.queue = nil
}

// deliver sends requests of one call each as one pipeline.
func (m *member) deliver(queue []request) {
	ctx, calls := queue[0].ctx, queue[0].calls
	if len(queue) > 1 {
		ctx, calls = m.q.c.backgroundCtx, make([]driver.Call, len(queue)) // they have no values in common
		for i, r := range queue {
			calls[i] = r.calls[0]
		}
	}
	for i, r := range m.evalAll(ctx, calls) {
		queue[i].done([]driver.Result{r})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sending--; m.sending == 0 {
		m.flush()
	}
}

// leaves says whether a token is about to be given up. What the member has answered is
// then no more there.
func (m *member) leaves(token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.queue, func(r request) bool {
		return r.calls[0].Script == lua.Leave && r.calls[0].Args[0] == token
	})
}
