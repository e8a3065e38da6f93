package zamokgoredis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

var (
	errUnsubscribed = errors.New("the server ended the subscription")
	errReconnected  = errors.New("the connection was lost")
)

// feed is a redis.PubSub held to one connection. PubSub connects again by
// itself when a read fails, before it returns the error; that connection is
// thrown away, because only Keeper knows how to tell of a break.
type feed struct {
	pubsub *redis.PubSub
	cancel context.CancelFunc              // ends what PubSub does by itself
	asked  atomic.Int64                    // PINGs not answered yet
	served func(ctx context.Context) error // why the server is not the place for the channel
}

// servedLimit bounds the question whether a server still has the channel's slot.
const servedLimit = 3 * time.Second

// open is driver.Keeper's Open.
func (d *goredis) open(ctx context.Context, channel string, sink *driver.Sink) (driver.Feed, error) {
	ps, served, err := d.pubsub(ctx, channel)
	if err != nil {
		return nil, serverError(err)
	}
	// A read ends only when the connection is closed, whatever ctx says.
	stop := context.AfterFunc(ctx, func() { ps.Close() })
	err = confirm(ctx, ps, channel)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = served(ctx)
	}
	if err != nil {
		ps.Close()
		d.reload(ctx)
		return nil, serverError(err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &feed{pubsub: ps, cancel: cancel, served: served}
	go func() {
		f.run(run, sink)
		d.reload(run)
	}()
	return f, nil
}

// pubsub subscribes to nothing yet, because Subscribe with a channel hides its
// error. In a cluster it is the primary of the channel's slot that is asked, by
// name: the client for a cluster may take any server.
func (d *goredis) pubsub(ctx context.Context, channel string) (ps *redis.PubSub, served func(context.Context) error, err error) {
	if d.cluster == nil {
		return d.client.Subscribe(ctx), func(context.Context) error { return nil }, nil
	}
	node, err := d.cluster.MasterForKey(ctx, channel)
	if err != nil {
		return nil, nil, err
	}
	return node.Subscribe(ctx), func(ctx context.Context) error {
		_, err := d.bounds.Call(ctx, servedLimit, func(ctx context.Context) (any, error) {
			return result(node.Do(ctx, "getex", channel))
		})
		if !driver.NotServed(err) {
			err = nil
		}
		return err
	}, nil
}

// reload has the client of a cluster look anew who has which slots, behind: what
// just failed or ended may have been elsewhere.
func (d *goredis) reload(ctx context.Context) {
	if d.cluster != nil {
		d.cluster.ReloadState(context.WithoutCancel(ctx))
	}
}

func confirm(ctx context.Context, ps *redis.PubSub, channel string) error {
	subscribe := ps.Subscribe
	if driver.Sharded(channel) {
		subscribe = ps.SSubscribe
	}
	if err := subscribe(ctx, channel); err != nil {
		return err
	}
	v, err := ps.Receive(ctx)
	if err != nil {
		return err
	}
	if _, ok := v.(*redis.Subscription); !ok {
		return fmt.Errorf("zamokgoredis: SUBSCRIBE was answered by %v", v)
	}
	return nil
}

// run reads until the connection ends, which Close brings about.
func (f *feed) run(ctx context.Context, sink *driver.Sink) {
	for {
		v, err := f.pubsub.Receive(ctx)
		if err != nil {
			// A server that refuses a PING, for lack of the right, lives. An
			// error that nobody asked for is PubSub's failure to connect again.
			err = serverError(err)
			if _, ok := err.(*driver.ServerError); !ok || f.asked.Add(-1) < 0 {
				sink.Broken(err)
				return
			}
			sink.Alive()
			continue
		}
		switch v := v.(type) {
		case *redis.Message:
			sink.Message(v.Payload)
		case *redis.Subscription:
			if v.Kind == "subscribe" || v.Kind == "ssubscribe" {
				sink.Broken(errReconnected)
			} else {
				sink.Broken(errUnsubscribed)
			}
			return
		default: // *redis.Pong
			f.asked.Add(-1)
			sink.Alive()
		}
	}
}

// Ping implements driver.Feed. PubSub may hold its lock while it connects, so
// that this may take as long; Close ends that. Whether the server still is the place
// for a slot's channel it cannot ask on the connection of the subscription.
func (f *feed) Ping(ctx context.Context) error {
	f.asked.Add(1)
	if err := f.pubsub.Ping(ctx); err != nil {
		return err
	}
	return f.served(ctx)
}

// Close implements driver.Feed.
func (f *feed) Close() {
	f.cancel()
	go f.pubsub.Close() // waits for PubSub's lock, see Ping
}
