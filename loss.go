package zamok

import (
	"context"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// gone ends leases that the server, by these answers, does not have any more.
func (c *Client) gone(ctx context.Context, leases []*Lease, answers []answer) {
	if len(leases) == 0 {
		return
	}
	for i, e := range c.losses(ctx, leases, answers) {
		l := leases[i]
		c.keeper.mu.Lock()
		if l.state != held {
			c.keeper.mu.Unlock()
			continue
		}
		l.lose(e)
		c.keeper.remove(l)
		c.keeper.mu.Unlock()
		l.tell(e)
	}
}

// diagnosis bounds the question why a key is gone. Whoever waits for the answer
// still believes in the lease, so it is short.
const diagnosis = 250 * time.Millisecond

// losses says how leases were lost. It asks the server, once, and after the
// loss, for the last fence of each lock: fences never expire, so one that is
// absent or smaller than ours means that the server lost what it had.
func (c *Client) losses(ctx context.Context, leases []*Lease, answers []answer) []*LostError {
	calls := make([]driver.Call, len(leases))
	for i, l := range leases {
		calls[i] = driver.Call{Script: lua.Inspect, Keys: l.spec.keys.Three, Args: []string{"0"}, Limit: diagnosis}
	}
	out := make([]*LostError, len(leases))
	for i, r := range c.d.EvalAll(ctx, calls) {
		l := leases[i]
		e := &LostError{Name: l.Name(), Fence: l.fence, Reason: LostTaken}
		e.By, _ = parseValue(answers[i].holder)
		if answers[i].status == "absent" {
			e.Reason = LostDeleted
		}
		if last, ok := lastFence(r); ok && last < l.fence {
			e.Reason = LostData
		}
		out[i] = e
	}
	return out
}

// lastFence reads the reply of the inspect script; false when it cannot be told.
func lastFence(r driver.Result) (int64, bool) {
	f, ok := r.Reply.([]any)
	if r.Err != nil || !ok || len(f) < 2 {
		return 0, false
	}
	text, ok := f[1].(string)
	fence, err := strconv.ParseInt(text, 10, 64)
	return fence, ok && err == nil
}

// report logs a loss and calls the hook.
func (c *Client) report(e *LostError) {
	attrs := []any{"lock", e.Name, "fence", e.Fence, "reason", string(e.Reason)}
	if e.By != (Holder{}) {
		attrs = append(attrs, "by", e.By.String())
	}
	if e.Err != nil {
		attrs = append(attrs, "err", e.Err)
	}
	c.cfg.Logger.Warn("zamok: lease lost", attrs...)
	if f := c.cfg.Trace.Lost; f != nil {
		f(e)
	}
}
