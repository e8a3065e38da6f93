// Package zamokrueidis lets zamok use a client of rueidis.
//
// The client stays the caller's: its connections, options and hooks are used as
// they are, and it is never closed. Nothing needs to be set on it. A subscription
// takes a connection of the pool for dedicated clients (BlockingPoolSize), and
// closes it when it ends.
//
// rueidis repeats no command of zamok's. It sends them over one connection that
// all callers share, and notices that this one is dead after Dialer.KeepAlive +
// ConnWriteTimeout (1 s + 10 s by default): shorten ConnWriteTimeout where locks
// have a short TTL. rueidis.NewClient itself connects, so a wrong address or
// password is its error and never reaches zamok's hints.
package zamokrueidis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
)

// New makes a driver of a client for one server, for a primary found by Sentinel,
// or for a cluster.
func New(c rueidis.Client) driver.Driver {
	d := &ruei{client: c, clustered: clustered(c)}
	d.keeper.Open = d.open
	return d
}

type ruei struct {
	client    rueidis.Client
	clustered bool
	hashes    driver.Hashes
	bounds    driver.Bounds
	keeper    driver.Keeper
}

// clustered asks the client itself. Older versions have no Mode, and tell by
// their type alone; one of these that is wrapped, by a hook, passes for a client
// of one server.
func clustered(c rueidis.Client) bool {
	if mode := reflect.ValueOf(c).MethodByName("Mode"); mode.IsValid() {
		return fmt.Sprint(mode.Call(nil)[0]) == "cluster"
	}
	return fmt.Sprintf("%T", c) == "*rueidis.clusterClient"
}

// Eval implements driver.Driver.
func (d *ruei) Eval(ctx context.Context, call driver.Call) (any, error) {
	return d.bounds.Call(ctx, call.Limit, func(ctx context.Context) (any, error) {
		sha, err := d.hashes.Of(ctx, call.Script, d.load)
		if err != nil {
			return nil, err
		}
		reply, err := result(d.client.Do(ctx, d.evalsha(sha, call)))
		if driver.IsNoScript(err) {
			reply, err = result(d.client.Do(ctx, d.eval(call)))
		}
		return reply, err
	})
}

// Do implements driver.Driver.
func (d *ruei) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	return d.bounds.Call(ctx, limit, func(ctx context.Context) (any, error) {
		return result(d.client.Do(ctx, d.client.B().Arbitrary(args...).Build()))
	})
}

// Clustered implements driver.Driver.
func (d *ruei) Clustered() bool { return d.clustered }

// Subscribe implements driver.Driver.
func (d *ruei) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	return d.keeper.Subscribe(ctx, limit, channel, handle)
}

// load asks for a script's hash. In a cluster it asks every server and takes the
// first answer: which one the client would ask is chance, and it may hang. Those that
// have not answered go on behind, within the client's limits.
func (d *ruei) load(ctx context.Context, source string) (string, error) {
	if !d.clustered {
		return loadAt(ctx, d.client, source)
	}
	type answer struct {
		sha string
		err error
	}
	nodes := d.client.Nodes()
	answers := make(chan answer, len(nodes))
	for _, node := range nodes {
		go func() {
			sha, err := loadAt(ctx, node, source)
			answers <- answer{sha, err}
		}()
	}
	last := answer{err: errNoNodes}
	for range nodes {
		if last = <-answers; last.err == nil {
			break
		}
	}
	return last.sha, last.err
}

var errNoNodes = errors.New("zamokrueidis: the client knows no server of the cluster")

func loadAt(ctx context.Context, c rueidis.Client, source string) (string, error) {
	v, err := result(c.Do(ctx, c.B().Arbitrary("SCRIPT", "LOAD", source).Build()))
	if err != nil {
		return "", err
	}
	sha, _ := v.(string)
	return sha, nil
}

// The builder copies keys and arguments, so a call that was given up holds
// nothing of the caller's. It is told of the first key alone: of a cluster's
// client it panics when keys lie in several slots, and a key of the caller's own
// script may, by mistake. The server answers CROSSSLOT, which is an error.

func (d *ruei) evalsha(sha string, call driver.Call) rueidis.Completed {
	first, rest := cut(call.Keys)
	return d.client.B().Evalsha().Sha1(sha).Numkeys(int64(len(call.Keys))).Key(first...).Arg(rest...).Arg(call.Args...).Build()
}

func (d *ruei) eval(call driver.Call) rueidis.Completed {
	first, rest := cut(call.Keys)
	return d.client.B().Eval().Script(call.Script.Source()).Numkeys(int64(len(call.Keys))).Key(first...).Arg(rest...).Arg(call.Args...).Build()
}

// cut parts the first key, if there is one, from the others.
func cut(keys []string) (first, rest []string) {
	n := min(len(keys), 1)
	return keys[:n], keys[n:]
}
