package zamokrueidis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
)

// EvalAll implements driver.Driver.
//
// One server answers one pipeline, so all calls end together: with their
// replies, or when the longest of their limits passes. A call that was answered
// later than its own limit still has its reply, which tells more than an error
// would.
func (d *ruei) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	if len(calls) == 0 {
		return results
	}
	var limit time.Duration
	for _, call := range calls {
		limit = max(limit, call.Limit)
	}
	reply, err := d.bounds.Call(ctx, limit, func(ctx context.Context) (any, error) {
		return d.pipeline(ctx, calls), nil
	})
	if err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	return reply.([]driver.Result)
}

// pipeline sends all calls as EVALSHA and then, of those whose script the
// server did not have, the text.
func (d *ruei) pipeline(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls)) // its own: an abandoned pipeline may still write
	cmds := make([]rueidis.Completed, 0, len(calls))
	sent := make([]int, 0, len(calls)) // which call each command is of
	for i, call := range calls {
		sha, err := d.hashes.Of(ctx, call.Script, d.load)
		if err != nil {
			results[i].Err = err
			continue
		}
		cmds, sent = append(cmds, d.evalsha(sha, call)), append(sent, i)
	}
	d.send(ctx, results, cmds, sent)
	var unknown []int
	cmds = nil
	for _, i := range sent {
		if driver.IsNoScript(results[i].Err) {
			cmds, unknown = append(cmds, d.eval(calls[i])), append(unknown, i)
		}
	}
	d.send(ctx, results, cmds, unknown)
	return results
}

func (d *ruei) send(ctx context.Context, results []driver.Result, cmds []rueidis.Completed, sent []int) {
	if len(cmds) == 0 {
		return
	}
	for n, r := range d.client.DoMulti(ctx, cmds...) {
		results[sent[n]].Reply, results[sent[n]].Err = result(r)
	}
}
