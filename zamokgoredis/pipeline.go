package zamokgoredis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

// EvalAll implements driver.Driver.
//
// One server answers one pipeline, so all calls end together: with their
// replies, or when the longest of their limits passes. A call that was answered
// later than its own limit still has its reply, which tells more than an error
// would.
func (d *goredis) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
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
func (d *goredis) pipeline(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls)) // its own: an abandoned pipeline may still write
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
