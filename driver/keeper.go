package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Feed is one connection of a client library that is subscribed to one channel.
type Feed interface {
	// Ping asks the server for a sign of life, which may come later, as a call
	// of Sink.Alive. An error means that the connection is of no use any more.
	// It returns soon after ctx has ended. One call is in flight at a time.
	Ping(ctx context.Context) error

	// Close begins to end the connection and does not wait for that. It is
	// called once, after the context of a Ping in flight has ended.
	Close()
}

// Keeper keeps subscriptions alive for a driver: it asks for a sign of life,
// and it connects again after a break. What a client library would do by itself
// in its own ways is thereby the same with every driver.
type Keeper struct {
	// Open connects and subscribes to the channel. It returns when the server
	// has confirmed, or with the reason why not, a *ServerError where the
	// server refused. It may outlive ctx, but not by more than the library's
	// own limits. What arrives on the connection goes to the sink, in order;
	// that may begin before Open returns.
	Open func(ctx context.Context, channel string, sink *Sink) (Feed, error)

	// PingEvery is the time between two questions for a sign of life, and the
	// time in which the answer must come. Default: 10 s
	PingEvery time.Duration

	bounds Bounds
}

const (
	pingEvery   = 10 * time.Second
	firstDelay  = 50 * time.Millisecond // between a break and the first attempt
	lastDelay   = 2 * time.Second
	attemptTime = 5 * time.Second // for one attempt to connect again
)

var errSilent = errors.New("the server gave no sign of life")

// Subscribe is Driver.Subscribe.
func (k *Keeper) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(Event)) (Subscription, error) {
	s := &subscription{keeper: k, channel: channel, handle: handle, ended: make(chan struct{})}
	sink, err := s.connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	// Values of the caller's context stay in use, for the library's hooks.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go s.run(run, sink)
	return s, nil
}

// subscription is the state of one Subscribe. Its goroutine, run, ends with
// Close.
type subscription struct {
	keeper  *Keeper
	channel string
	handle  func(Event)
	cancel  context.CancelFunc
	ended   chan struct{} // closed by run

	// mu is held around handle: so events come one at a time, and none comes
	// after Close took it.
	mu     sync.Mutex
	closed bool
}

// Sink takes what one connection delivers. Its methods may be called from any
// goroutine, also after the connection was closed.
type Sink struct {
	of     *subscription
	alive  atomic.Bool
	broken chan error // one slot: the first reason counts

	// Guarded by of.mu.
	feed    Feed
	live    bool     // Open has returned in time: messages go to handle
	dropped bool     // nothing is taken any more
	early   []string // messages that came before Open had returned
}

// Message takes a message that was published to the channel.
func (k *Sink) Message(payload string) {
	k.alive.Store(true)
	s := k.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case k.dropped || s.closed:
	case !k.live:
		k.early = append(k.early, payload)
	default:
		s.handle(Event{Kind: Message, Payload: payload})
	}
}

// Alive takes any other sign of life, such as the answer to a PING, also a
// refusal.
func (k *Sink) Alive() { k.alive.Store(true) }

// Broken says that nothing will come any more, and why.
func (k *Sink) Broken(err error) {
	select {
	case k.broken <- err:
	default:
	}
}

// Close is Subscription.Close.
func (s *subscription) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	<-s.ended
	return nil
}

func (s *subscription) run(ctx context.Context, sink *Sink) {
	defer close(s.ended)
	for sink != nil {
		err := s.watch(ctx, sink)
		s.drop(sink)
		s.emit(Event{Kind: Broken, Err: err})
		sink = s.reconnect(ctx)
	}
}

// emit is for events that belong to no connection.
func (s *subscription) emit(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handle(e)
	}
}

// watch returns when the connection is broken, or silent, or ctx has ended.
func (s *subscription) watch(ctx context.Context, sink *Sink) error {
	every := s.keeper.PingEvery
	if every <= 0 {
		every = pingEvery
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a ping in flight
	tick := time.NewTicker(every)
	defer tick.Stop()
	pinged := make(chan error, 1)
	asked, inFlight := false, false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-sink.broken:
			return err
		case err := <-pinged:
			if inFlight = false; err != nil {
				return err
			}
		case <-tick.C:
			if !sink.alive.Swap(false) && asked {
				return errSilent
			}
			asked = true
			if !inFlight {
				inFlight = true
				go func() { pinged <- sink.feed.Ping(ctx) }()
			}
		}
	}
}

// reconnect tries until it succeeds. It returns nil when ctx has ended.
func (s *subscription) reconnect(ctx context.Context) *Sink {
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		// A restart breaks all subscriptions at once; they should not all come
		// back at once.
		wait := min(delay+rand.N(delay/2), lastDelay)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if sink, err := s.connect(ctx, attemptTime); err == nil {
			return sink
		}
	}
}

// connect opens one connection. Open may return after it was given up, so who
// comes first, Open or the limit, is decided under mu: the connection is either
// live, whatever Call says, or is closed.
func (s *subscription) connect(ctx context.Context, limit time.Duration) (*Sink, error) {
	sink := &Sink{of: s, broken: make(chan error, 1)}
	_, err := s.keeper.bounds.Call(ctx, limit, func(ctx context.Context) (any, error) {
		feed, err := s.keeper.Open(ctx, s.channel, sink)
		if err != nil {
			return nil, err
		}
		if !s.adopt(sink, feed) {
			feed.Close()
		}
		return nil, nil
	})
	if err == nil || s.giveUp(sink) {
		return sink, nil
	}
	return nil, err
}

// adopt makes a connection the one that counts, unless it comes too late.
func (s *subscription) adopt(sink *Sink, feed Feed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sink.dropped {
		return false
	}
	sink.feed, sink.live = feed, true
	if s.closed { // run drops it
		return true
	}
	s.handle(Event{Kind: Subscribed})
	for _, payload := range sink.early {
		s.handle(Event{Kind: Message, Payload: payload})
	}
	sink.early = nil
	return true
}

// giveUp drops a connection that is still being opened. It returns true when it
// was adopted just before.
func (s *subscription) giveUp(sink *Sink) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sink.dropped = !sink.live
	return sink.live
}

// drop ends an adopted connection.
func (s *subscription) drop(sink *Sink) {
	s.mu.Lock()
	sink.dropped = true
	s.mu.Unlock()
	sink.feed.Close()
}
