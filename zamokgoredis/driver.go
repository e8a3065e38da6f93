// Package zamokgoredis lets zamok use a client of go-redis v9.
//
// The client stays the caller's: its pool, options and hooks are used as they
// are, and it is never closed. Nothing needs to be set on it. In particular,
// go-redis by default repeats a command whose reply was lost up to three times,
// which zamok's scripts allow for, and does not look at a context while a
// command is in flight; a call ends in time all the same, and leaves a goroutine
// behind that waits for the client's own limits (ReadTimeout, DialTimeout).
//
// Hooks see a command with the context of zamok's caller, or as one of a pipeline,
// whose context has no values, when many goroutines call at the same time.
//
// In a cluster newer versions ask some server, whichever, for COMMAND before the
// first command: when that one hangs just then, the first call has to wait for it.
package zamokgoredis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

// New makes a driver of a client: a *redis.Client, also one made by
// NewFailoverClient, or a *redis.ClusterClient.
func New(c redis.UniversalClient) driver.Driver {
	d := &goredis{client: c}
	d.cluster, _ = c.(cluster)
	d.keeper.Open = d.open
	return d
}

type goredis struct {
	client  redis.UniversalClient
	cluster cluster // nil: it is none
	hashes  driver.Hashes
	bounds  driver.Bounds
	keeper  driver.Keeper
}

// cluster is what a *redis.ClusterClient has beyond any other client.
type cluster interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ReloadState(ctx context.Context)
}

// Eval implements driver.Driver.
func (d *goredis) Eval(ctx context.Context, call driver.Call) (any, error) {
	return d.bounds.Call(ctx, call.Limit, func(ctx context.Context) (any, error) {
		sha, err := d.hashes.Of(ctx, call.Script, d.load(call))
		if err != nil {
			return nil, err
		}
		args := arguments(call)
		reply, err := result(d.client.EvalSha(ctx, sha, call.Keys, args...))
		if driver.IsNoScript(err) {
			reply, err = result(d.client.Eval(ctx, call.Script.Source(), call.Keys, args...))
		}
		return reply, err
	})
}

// Do implements driver.Driver.
func (d *goredis) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	return d.bounds.Call(ctx, limit, func(ctx context.Context) (any, error) {
		return result(d.client.Do(ctx, boxed(args)...))
	})
}

// Clustered implements driver.Driver.
func (d *goredis) Clustered() bool { return d.cluster != nil }

// Subscribe implements driver.Driver.
func (d *goredis) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	return d.keeper.Subscribe(ctx, limit, channel, handle)
}

// load returns what asks for a script's hash: in a cluster the server that is to run
// the call, since the client for it would ask all, and one that hangs would stop
// all. It is a plain command and not ScriptLoad for the same reason.
func (d *goredis) load(call driver.Call) func(ctx context.Context, source string) (string, error) {
	return func(ctx context.Context, source string) (string, error) {
		client := d.client
		if d.cluster != nil && len(call.Keys) > 0 {
			node, err := d.cluster.MasterForKey(ctx, call.Keys[0])
			if err != nil {
				return "", serverError(err)
			}
			client = node
		}
		cmd := client.Do(ctx, "script", "load", source)
		if err := cmd.Err(); err != nil {
			d.reload(ctx)
			return "", serverError(err)
		}
		return cmd.Text()
	}
}

func arguments(call driver.Call) []any { return boxed(call.Args) }

func boxed(args []string) []any {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	return list
}
