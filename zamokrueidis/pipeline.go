package zamokrueidis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
)

// EvalAll implements driver.Driver.
func (d *ruei) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	if !d.clustered {
		return d.bounds.CallAll(ctx, calls, nil, d.pipeline)
	}
	// The client waits for all servers that its DoMulti concerns, and does not tell
	// who they are. One for each slot costs little: what goes to one server goes over
	// one connection, together.
	return d.bounds.CallAll(ctx, calls, d.slot, d.pipeline)
}

// slot is the slot of a call's first key.
func (d *ruei) slot(call driver.Call) any {
	first, _ := cut(call.Keys)
	cmd := d.client.B().Arbitrary("EXISTS").Keys(first...).Build()
	return cmd.Slot()
}

// pipeline sends all calls as EVALSHA and then, of those whose script the
// server did not have, the text.
func (d *ruei) pipeline(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
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
