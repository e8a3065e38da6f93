package zamokrueidis

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
)

var (
	errUnsubscribed = errors.New("the server ended the subscription")
	errClosed       = errors.New("the connection was closed")
)

// feed is a dedicated connection of the client.
type feed struct {
	client  rueidis.DedicatedClient
	channel string

	// mu is held while a command is in flight: a dedicated client panics when
	// it is used after Close.
	mu     sync.Mutex
	closed bool
}

// open is driver.Keeper's Open. Dedicate connects without a context, within
// Dialer.Timeout.
func (d *ruei) open(ctx context.Context, channel string, sink *driver.Sink) (driver.Feed, error) {
	client, _ := d.client.Dedicate()
	f := &feed{client: client, channel: channel}
	broken := client.SetPubSubHooks(hooks(channel, sink))
	if err := f.Ping(ctx); err != nil {
		f.Close()
		return nil, err
	}
	// This ends with the connection, which Close brings about.
	go func() {
		err := <-broken
		if err == nil {
			err = errClosed
		}
		sink.Broken(serverError(err))
	}()
	return f, nil
}

// hooks are called by the connection's reader, one at a time.
func hooks(channel string, sink *driver.Sink) rueidis.PubSubHooks {
	return rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			if m.Channel == channel {
				sink.Message(m.Message)
			}
		},
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
				sink.Alive()
			} else {
				sink.Broken(errUnsubscribed)
			}
		},
	}
}

// Ping implements driver.Feed. It subscribes, once more after the first time,
// which the server confirms as often as it is asked to: with RESP2 rueidis would
// send a PING on another connection than that of the subscription. Then it asks, of a
// slot's channel, whether the server still is the place for it: before the
// subscription the answer could be outdated. A MOVED has rueidis look anew who has
// which slots.
func (f *feed) Ping(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed
	}
	if !driver.Sharded(f.channel) {
		return f.do(ctx, f.client.B().Subscribe().Channel(f.channel).Build())
	}
	if err := f.do(ctx, f.client.B().Ssubscribe().Channel(f.channel).Build()); err != nil {
		return err
	}
	if err := f.do(ctx, f.client.B().Arbitrary("GETEX").Keys(f.channel).Build()); driver.NotServed(err) {
		return err
	}
	return nil
}

func (f *feed) do(ctx context.Context, cmd rueidis.Completed) error {
	return serverError(f.client.Do(ctx, cmd).Error())
}

// Close implements driver.Feed. rueidis says goodbye to the server first and
// waits for the answer: a server that hangs makes that take as long as the
// client needs to notice (see the package comment).
func (f *feed) Close() {
	go func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closed = true
		f.client.Close()
	}()
}
