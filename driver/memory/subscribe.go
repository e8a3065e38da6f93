package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// subscription is one subscription to one channel. mu of Server guards its
// fields. Its goroutine is started by Subscribe and ended by Close.
type subscription struct {
	s       *Server
	channel string
	handle  func(driver.Event)
	queue   []delivery
	closed  bool

	wake   chan struct{} // holds one: there is something new in queue
	stop   chan struct{} // closed by Close
	ended  chan struct{} // closed by the goroutine
	closer sync.Once
}

// delivery is an event and the moment at which it arrives; the zero time: now.
type delivery struct {
	event driver.Event
	due   time.Time
}

// Subscribe subscribes to a channel. See driver.Driver.
func (s *Server) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	if err := admit(ctx, limit); err != nil {
		return nil, err
	}
	sub := &subscription{s: s, channel: channel, handle: handle,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	start := time.Now()
	f := newFlight("SUBSCRIBE", limit)
	f.run = func() (any, error) { return nil, sub.connect() }
	s.launch(f)
	if _, err := s.await(ctx, f, start); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		sub.leave() // also when the server has not seen the request yet
		return nil, err
	}
	go sub.loop()
	return sub, nil
}

// connect makes the subscription known to the server, or says why not. mu is
// held.
func (sub *subscription) connect() error {
	s := sub.s
	for _, err := range []error{s.down, s.cut, s.refused} {
		if err != nil {
			return err
		}
	}
	if sub.closed {
		return errors.New("memory: the subscription was given up")
	}
	s.subs[sub.channel] = append(s.subs[sub.channel], sub)
	sub.push(driver.Event{Kind: driver.Subscribed}, 0)
	return nil
}

// leave makes the server forget the subscription for good. mu is held.
func (sub *subscription) leave() {
	sub.closed = true
	sub.s.forget(sub)
	sub.s.lost = slices.DeleteFunc(sub.s.lost, func(x *subscription) bool { return x == sub })
}

func (s *Server) forget(sub *subscription) {
	rest := slices.DeleteFunc(s.subs[sub.channel], func(x *subscription) bool { return x == sub })
	s.subs[sub.channel] = rest
	if len(rest) == 0 {
		delete(s.subs, sub.channel)
	}
}

// push puts an event behind those that are on their way; nothing overtakes. mu
// is held.
func (sub *subscription) push(e driver.Event, wait time.Duration) {
	d := delivery{event: e}
	if wait > 0 {
		d.due = time.Now().Add(wait)
	}
	if n := len(sub.queue); n > 0 && d.due.Before(sub.queue[n-1].due) {
		d.due = sub.queue[n-1].due
	}
	sub.queue = append(sub.queue, d)
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

// loop hands the events to handle, one at a time.
func (sub *subscription) loop() {
	defer close(sub.ended)
	for {
		event, wait, ok := sub.next()
		switch {
		case !ok:
			select {
			case <-sub.wake:
			case <-sub.stop:
				return
			}
		case wait > 0:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-sub.wake: // the connection may have broken, and the head be gone
			case <-sub.stop:
				timer.Stop()
				return
			}
			timer.Stop()
		default:
			sub.handle(event)
		}
	}
}

// next takes the first event if it has arrived, or says how long that will be.
func (sub *subscription) next() (e driver.Event, wait time.Duration, ok bool) {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	if len(sub.queue) == 0 || sub.closed {
		return driver.Event{}, 0, false
	}
	head := sub.queue[0]
	if !head.due.IsZero() {
		if wait := time.Until(head.due); wait > 0 {
			return driver.Event{}, wait, true
		}
	}
	sub.queue = sub.queue[1:]
	return head.event, 0, true
}

// Close ends the subscription and its goroutine.
func (sub *subscription) Close() error {
	sub.closer.Do(func() {
		sub.s.mu.Lock()
		sub.leave()
		sub.s.mu.Unlock()
		close(sub.stop)
	})
	<-sub.ended
	return nil
}

// Subscribers returns how many subscriptions the server knows for the channel.
func (s *Server) Subscribers(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subs[channel])
}

// Publish sends a message to all who subscribed to the channel, and returns how
// many that are. It works whatever is broken.
func (s *Server) Publish(channel, payload string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(channel, payload)
	return len(s.subs[channel])
}

func (s *Server) listeners(channel string) int64 { return int64(len(s.subs[channel])) }

func (s *Server) publish(channel, payload string) {
	for _, sub := range s.subs[channel] {
		var fault MessageFault
		if s.onMessage != nil {
			fault = s.onMessage(channel, payload)
		}
		if !fault.Drop {
			sub.push(driver.Event{Kind: driver.Message, Payload: payload}, s.latency+fault.Delay)
		}
	}
}

// breakAll breaks every connection of a subscription. What was on its way is
// lost; what has arrived, and is not handled yet, is not. mu is held.
func (s *Server) breakAll(why error) {
	now := time.Now()
	for _, subs := range s.subs {
		for _, sub := range subs {
			sub.queue = slices.DeleteFunc(sub.queue, func(d delivery) bool { return d.due.After(now) })
			sub.push(driver.Event{Kind: driver.Broken, Err: why}, 0)
			s.lost = append(s.lost, sub)
		}
	}
	clear(s.subs)
}

// reconnect makes the broken subscriptions again, if nothing forbids it. mu is
// held.
func (s *Server) reconnect() {
	if s.hung {
		return
	}
	s.lost = slices.DeleteFunc(s.lost, func(sub *subscription) bool { return sub.connect() == nil })
}
