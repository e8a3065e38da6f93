package zamok

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/token"
)

// gone ends leases that the server, by these answers, does not have any more.
func (c *Client) gone(ctx context.Context, leases []*Lease, answers []answer) {
	if len(leases) == 0 {
		return
	}
	var ended []*Lease
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
		ended = append(ended, l)
	}
	tellAll(ended)
}

// diagnosis bounds the question why a key is gone, which is asked twice at most.
// Whoever waits for the answer still believes in the lease, so it is short.
const diagnosis = 250 * time.Millisecond

// losses says how leases were lost. It asks the server, once, and after the
// loss, for the last fence of each lock: fences never expire, so one that is
// absent or smaller than ours means that the server lost what it had. It asks too
// whether an operator took the lock away.
func (c *Client) losses(ctx context.Context, leases []*Lease, answers []answer) []*LostError {
	calls := make([]driver.Call, len(leases))
	for i, l := range leases {
		calls[i] = l.as().autopsy(l.token)
	}
	out := make([]*LostError, len(leases))
	results := c.d.EvalAll(ctx, calls)
	if results[0].Err != nil { // a server that has much to do; it is worth a second look
		results = c.d.EvalAll(ctx, calls)
	}
	for i, r := range results {
		last, note := afterwards(r)
		out[i] = leases[i].lossBy(answers[i], last, note)
	}
	return out
}

// lossOf is losses for one lease, and the last fence; negative when it cannot be
// told.
func (c *Client) lossOf(ctx context.Context, l *Lease, ans answer) (e *LostError, last int64) {
	var r driver.Result
	for range 2 {
		if r.Reply, r.Err = c.d.Eval(ctx, l.as().autopsy(l.token)); r.Err == nil {
			break
		}
	}
	last, note := afterwards(r)
	return l.lossBy(ans, last, note), last
}

func (l *Lease) lossBy(ans answer, last int64, note string) *LostError {
	e := &LostError{Name: l.Name(), Fence: l.fence, Reason: LostTaken}
	e.By, _ = parseValue(ans.holder)
	if ans.status == "absent" {
		e.Reason = LostDeleted
	}
	if last >= 0 && last < l.lastFence() {
		e.Reason = LostData
	}
	if lease, by, why, ok := token.ParseBroken(note); ok && lease == l.token {
		e.Reason, e.Operator, e.Why = LostBroken, by, why
	}
	return e
}

// afterwards reads the reply of an autopsy: the last fence, negative when it cannot
// be told, and the lease that was taken away, with the note of who did.
func afterwards(r driver.Result) (last int64, note string) {
	f, ok := r.Reply.([]any)
	var text string
	switch {
	case r.Err != nil || !ok:
		return -1, ""
	case len(f) == 2: // of one of several
		ok = set(&text, f[0]) && set(&note, f[1])
	case len(f) >= 6:
		ok = set(&text, f[1]) && set(&note, f[5])
	default:
		ok = false
	}
	last, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return -1, note
	}
	return last, note
}

// report logs a loss, calls the hook, and writes it down for operators.
func (l *Lease) report(e *LostError) {
	c := l.client
	attrs := []any{"lock", e.Name, "fence", e.Fence, "reason", string(e.Reason)}
	if e.Operator != "" {
		attrs = append(attrs, "operator", e.Operator, "why", e.Why)
	}
	if e.By != (Holder{}) {
		attrs = append(attrs, "by", e.By.String())
	}
	if e.Err != nil {
		attrs = append(attrs, "err", e.Err)
	}
	level := slog.LevelWarn
	if e.Reason == LostClosed {
		level = slog.LevelDebug // the caller wanted it
	}
	c.cfg.Logger.Log(context.Background(), level, "zamok: lease lost", attrs...)
	if f := c.cfg.Trace.Lost; f != nil {
		f(e)
	}
	l.noteLoss(e)
}

// aboutLease reads what came of a renew script, whose only key is the lock. A key
// of another type is an answer too: whoever put it there took the lock.
func aboutLease(ans answer, err error) (answer, error) {
	if r := refusal("", err); r != nil && r.Code == "WRONGTYPE" {
		return answer{status: "other"}, nil
	}
	return ans, err
}
