package demo

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/zamok-go/zamok"
)

// scene is one act as it is played.
type scene struct {
	ctx    context.Context //nolint:containedctx // of one act, whose end is the scene's: it takes much too long
	cancel context.CancelFunc
	config Config
	out    *printer
	ttl    time.Duration
	lock   string // the name of the act's lock
	actors []*actor
}

// actor is one process, as far as the server can tell.
type actor struct {
	scene    *scene
	name     string
	wire     *wire
	client   *zamok.Client
	mutex    *zamok.Mutex
	queued   chan struct{}           // it stands in the queue
	acquired chan zamok.AcquiredInfo // one for each time that it got the lock
	renewals chan struct{}           // one for each renewal that was answered
}

func (s *scene) actor(name string) (*actor, error) {
	d := s.config.Driver
	if s.config.Sabotage != nil {
		d = s.config.Sabotage(name, d)
	}
	a := &actor{
		scene: s, name: name, wire: newWire(d),
		queued: make(chan struct{}, 64), acquired: make(chan zamok.AcquiredInfo, 64), renewals: make(chan struct{}, 1024),
	}
	client, err := zamok.New(a.wire, &zamok.Config{
		Prefix: s.config.Prefix, TTL: s.ttl, Logger: slog.New(slog.DiscardHandler),
		Trace: &zamok.Trace{
			Waiting:  func(zamok.WaitingInfo) { note(a.queued, struct{}{}) },
			Acquired: func(i zamok.AcquiredInfo) { note(a.acquired, i) },
			Renewed: func(i zamok.RenewedInfo) {
				if i.Err == nil {
					note(a.renewals, struct{}{})
				}
			},
		},
	})
	if err != nil {
		return nil, err
	}
	a.client, a.mutex = client, client.Mutex(s.lock, nil)
	s.actors = append(s.actors, a)
	return a, nil
}

// note never makes a hook wait.
func note[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}

// cast makes several actors.
func (s *scene) cast(names ...string) ([]*actor, error) {
	for _, name := range names {
		if _, err := s.actor(name); err != nil {
			return nil, err
		}
	}
	return s.actors, nil
}

func (a *actor) say(format string, args ...any) { a.scene.out.event(a.name, format, args...) }

// got is what came of waiting for the lock.
type got struct {
	lease *zamok.Lease
	at    time.Time
	err   error
}

// lockBehind waits for the lock in the background and returns once it stands in
// the queue, so that the order of arrival is certain.
func (a *actor) lockBehind() (<-chan got, error) {
	c := make(chan got, 1)
	go func() {
		lease, err := a.mutex.Lock(a.scene.ctx)
		c <- got{lease, time.Now(), err}
	}()
	select {
	case <-a.queued:
		a.say("waits in line")
		return c, nil
	case g := <-c: // it did not have to wait: whoever judges will see
		c <- g
		return c, nil
	case <-a.scene.ctx.Done():
		return nil, context.Cause(a.scene.ctx)
	}
}

// pause lets time go by, to be seen or because the act needs it.
func (s *scene) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// close ends all actors. Wires work again by then, so that nothing stays behind
// on the server.
func (s *scene) close() {
	s.cancel()
	var all sync.WaitGroup
	for _, a := range s.actors {
		a.wire.heal()
		all.Go(func() { _ = a.client.Close() })
	}
	all.Wait()
}
