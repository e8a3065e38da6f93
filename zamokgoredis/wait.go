package zamokgoredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

// node is what a *redis.Client has, which talks to one server, and a *redis.Ring
// has not.
type node interface {
	redis.UniversalClient
	Options() *redis.Options
	WithTimeout(timeout time.Duration) *redis.Client
}

// waited is what came of a call of EvalWait.
type waited struct {
	reply any
	acked int64
}

// EvalWait implements driver.Driver. Both commands go as one pipeline, so that the
// library, when it tries again, sends both on one connection again: on another one
// WAIT would count those who have what that one wrote, which is nothing.
func (d *goredis) EvalWait(ctx context.Context, call driver.Call, replicas int, timeout time.Duration) (any, int64, error) {
	v, err := d.bounds.Call(ctx, call.Limit, func(ctx context.Context) (any, error) {
		sha, err := d.hashes.Of(ctx, call.Script, d.load(call))
		if err != nil {
			return nil, err
		}
		node, err := d.node(ctx, call, timeout)
		if err != nil {
			d.reload(ctx)
			return nil, err
		}
		args := arguments(call)
		w, err := wait(ctx, node, replicas, timeout, func(pipe redis.Pipeliner) *redis.Cmd {
			return pipe.EvalSha(ctx, sha, call.Keys, args...)
		})
		if driver.IsNoScript(err) {
			w, err = wait(ctx, node, replicas, timeout, func(pipe redis.Pipeliner) *redis.Cmd {
				return pipe.Eval(ctx, call.Script.Source(), call.Keys, args...)
			})
		}
		if err != nil {
			d.reload(ctx) // the client does not see what its nodes' clients are told, nor that one is gone
		}
		return w, err
	})
	w, _ := v.(waited)
	return w.reply, w.acked, err
}

// answerTime is what an answer needs beside the time for which WAIT waits.
const answerTime = 500 * time.Millisecond

// node returns a client for the server of the call's slot that reads for as long as
// WAIT may take. One whose own limit is too short is copied with a longer one; such a
// copy has lost the user's hooks in some versions of the library.
func (d *goredis) node(ctx context.Context, call driver.Call, timeout time.Duration) (node, error) {
	n, ok := d.client.(node)
	if d.cluster != nil {
		key := ""
		if len(call.Keys) > 0 {
			key = call.Keys[0]
		}
		c, err := d.cluster.MasterForKey(ctx, key)
		if err != nil {
			return nil, serverError(err)
		}
		n, ok = c, true
	}
	if !ok {
		return nil, fmt.Errorf("zamokgoredis: a %T cannot send WAIT after a script on one connection", d.client)
	}
	if limit := n.Options().ReadTimeout; limit > 0 && limit < timeout+answerTime {
		return n.WithTimeout(call.Limit), nil
	}
	return n, nil
}

func wait(ctx context.Context, c node, replicas int, timeout time.Duration, script func(redis.Pipeliner) *redis.Cmd) (waited, error) {
	pipe := c.Pipeline()
	first := script(pipe)
	second := pipe.Do(ctx, "WAIT", replicas, max(1, timeout.Milliseconds()))
	_, failed := pipe.Exec(ctx)
	reply, err := result(first)
	if err != nil {
		return waited{}, err
	}
	acked, err := result(second)
	if err != nil {
		return waited{}, err
	}
	n, ok := acked.(int64)
	if !ok && failed != nil { // a pipeline that failed before it was written may not say so of its commands
		return waited{}, serverError(failed)
	}
	if !ok {
		return waited{}, fmt.Errorf("zamokgoredis: WAIT replied %v", acked)
	}
	return waited{reply, n}, nil
}
