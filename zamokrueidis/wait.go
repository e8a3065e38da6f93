package zamokrueidis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
)

// waited is what came of a call of EvalWait.
type waited struct {
	reply any
	acked int64
}

// EvalWait implements driver.Driver. It takes a connection of the pool for dedicated
// clients: on the one that all callers share, WAIT would hold up all of them.
func (d *ruei) EvalWait(ctx context.Context, call driver.Call, replicas int, timeout time.Duration) (any, int64, error) {
	v, err := d.bounds.Call(ctx, call.Limit, func(ctx context.Context) (any, error) {
		sha, err := d.hashes.Of(ctx, call.Script, d.load)
		if err != nil {
			return nil, err
		}
		// The library asks for no sign of life while a command may block: without a
		// deadline of its own it would wait for a server that hangs for ever.
		ctx, cancel := context.WithTimeout(ctx, call.Limit)
		defer cancel()
		var w waited
		err = d.client.Dedicated(func(c rueidis.DedicatedClient) (err error) {
			w, err = d.wait(ctx, c, d.evalsha(sha, call), replicas, timeout)
			if driver.IsNoScript(err) {
				w, err = d.wait(ctx, c, d.eval(call), replicas, timeout)
			}
			return err
		})
		return w, err
	})
	w, _ := v.(waited)
	return w.reply, w.acked, err
}

func (d *ruei) wait(ctx context.Context, c rueidis.DedicatedClient, script rueidis.Completed, replicas int, timeout time.Duration) (waited, error) {
	both := c.DoMulti(ctx, script,
		d.client.B().Wait().Numreplicas(int64(replicas)).Timeout(max(1, timeout.Milliseconds())).Build())
	reply, err := result(both[0])
	if err != nil {
		return waited{}, err
	}
	acked, err := result(both[1])
	if err != nil {
		return waited{}, err
	}
	n, ok := acked.(int64)
	if !ok {
		return waited{}, fmt.Errorf("zamokrueidis: WAIT replied %v", acked)
	}
	return waited{reply, n}, nil
}
