package zamokgoredis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

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
	cancel context.CancelFunc // ends what PubSub does by itself
	asked  atomic.Int64       // PINGs not answered yet
}

// open is driver.Keeper's Open.
func (d *goredis) open(ctx context.Context, channel string, sink *driver.Sink) (driver.Feed, error) {
	ps := d.client.Subscribe(ctx) // to nothing: Subscribe with a channel hides its error
	// A read ends only when the connection is closed, whatever ctx says.
	stop := context.AfterFunc(ctx, func() { ps.Close() })
	err := confirm(ctx, ps, channel)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		ps.Close()
		return nil, serverError(err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &feed{pubsub: ps, cancel: cancel}
	go f.run(run, sink)
	return f, nil
}

func confirm(ctx context.Context, ps *redis.PubSub, channel string) error {
	if err := ps.Subscribe(ctx, channel); err != nil {
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
			if v.Kind == "subscribe" {
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
// that this may take as long; Close ends that.
func (f *feed) Ping(ctx context.Context) error {
	f.asked.Add(1)
	return f.pubsub.Ping(ctx)
}

// Close implements driver.Feed.
func (f *feed) Close() {
	f.cancel()
	go f.pubsub.Close() // waits for PubSub's lock, see Ping
}
