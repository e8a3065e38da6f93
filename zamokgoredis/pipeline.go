package zamokgoredis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

// EvalAll implements driver.Driver.
func (d *goredis) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	return d.bounds.CallAll(ctx, calls, func(ctx context.Context) []driver.Result { return d.pipeline(ctx, calls) })
}

// pipeline sends all calls as EVALSHA and then, of those whose script the
// server did not have, the text.
func (d *goredis) pipeline(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	shas := make([]string, len(calls))
	all := make([]int, 0, len(calls))
	for i, call := range calls {
		if shas[i], results[i].Err = d.hashes.Of(ctx, call.Script, d.load); results[i].Err == nil {
			all = append(all, i)
		}
	}
	d.send(ctx, results, all, func(pipe redis.Pipeliner, i int) *redis.Cmd {
		return pipe.EvalSha(ctx, shas[i], calls[i].Keys, arguments(calls[i])...)
	})
	again := all[:0]
	for _, i := range all {
		if driver.IsNoScript(results[i].Err) {
			again = append(again, i)
		}
	}
	d.send(ctx, results, again, func(pipe redis.Pipeliner, i int) *redis.Cmd {
		return pipe.Eval(ctx, calls[i].Script.Source(), calls[i].Keys, arguments(calls[i])...)
	})
	return results
}

// send executes one pipeline of the calls with these indexes.
func (d *goredis) send(ctx context.Context, results []driver.Result, indexes []int, add func(redis.Pipeliner, int) *redis.Cmd) {
	if len(indexes) == 0 {
		return
	}
	pipe := d.client.Pipeline()
	cmds := make([]*redis.Cmd, len(indexes))
	for n, i := range indexes {
		cmds[n] = add(pipe, i)
	}
	_, err := pipe.Exec(ctx)
	for n, i := range indexes {
		results[i].Reply, results[i].Err = result(cmds[n])
		// A pipeline that failed before it was written may leave its commands
		// without an error and without a reply, which is not the reply nil.
		if err != nil && results[i].Reply == nil && results[i].Err == nil && cmds[n].Err() == nil {
			results[i].Err = serverError(err)
		}
	}
}
