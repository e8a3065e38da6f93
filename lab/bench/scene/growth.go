package scene

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// playGrowth has few clients with many waiters each, at most 100: ten thousand clients would
// measure how a server bears twenty thousand connections. On the server it is the same: each
// waiter is asked about and told by itself, as Apart has it.
func playGrowth(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	n := e.X
	if e.Quick {
		n = min(n, 100)
	}
	// Nobody renews for the peers: what is held must last until all wait and were watched.
	options := func(int) locker.Options { return locker.Options{Apart: true, TTL: 30 * time.Second} }
	holder, err := k.Open(s.Addr(), options(0))
	if err != nil {
		return err
	}
	defer holder.Close()
	h, err := holder.Of("job")(ctx)
	if err != nil {
		return err
	}
	of, done, err := clientsOf(k, s.Addr(), "job", min(n, 100), options)
	if err != nil {
		return err
	}
	defer done()
	takes := make([]locker.Take, n)
	for i := range takes {
		takes[i] = of[i%len(of)]
	}
	c := newCrowd(takes, time.Millisecond, 1)
	c.pace = func(ctx context.Context, begun int) error {
		if begun == 0 || begun%100 > 0 {
			return nil
		}
		return queued(ctx, s, k, begun, 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.play(ctx) }()
	err = e.grown(ctx, s, c, h, n)
	cancel()
	if played := <-ended; err == nil {
		err = played
	}
	return err
}

// grown watches n who wait, and then who takes turns.
func (e *Env) grown(ctx context.Context, s *drivertest.Server, c *crowd, h locker.Held, n int) error {
	k := e.Kinds[0]
	if err := queued(ctx, s, k, n, e.span(time.Second)); err != nil {
		return err
	}
	if engines(k) {
		span := e.span(2 * time.Second)
		if zamok(k) {
			span = e.span(6 * time.Second)
		}
		if err := e.watch(ctx, k, func() usage { return usageOf(s) }, span); err != nil {
			return err
		}
	}
	if err := h.Release(ctx); err != nil {
		return err
	}
	if err := wait(ctx, e.span(300*time.Millisecond)); err != nil {
		return err
	}
	before := usageOf(s)
	c.reset()
	t := c.end()
	for limit := 20; limit > 0 && (len(t.passes) == 0 || t.acquired() == 0); limit-- { // once, unless nothing happens in a moment
		if err := wait(ctx, e.span(1500*time.Millisecond)); err != nil {
			return err
		}
		if t = c.end(); n == 1 {
			break // one alone takes it from nobody
		}
	}
	did := usageOf(s).since(before)
	passes, acquired := t.passes, float64(t.acquired())
	if acquired == 0 || len(passes) == 0 && n > 1 {
		return errors.New("nobody took it from another")
	}
	if n > 1 {
		e.add(k, "p50 µs", micros(quantile(passes, 0.50)))
		e.add(k, "p99 µs", micros(quantile(passes, 0.99)))
	}
	commands, requests, _, _ := did.work(k)
	e.add(k, "commands", commands/acquired)
	e.add(k, "requests", requests/acquired)
	e.add(k, "server µs", micros(did.cpu)/acquired)
	return nil
}

// queued waits until so many stand in the queue, or where there is none for as long as they
// may need to begin. So they come a hundred at a time: of ten thousand calls at once most
// would wait for a connection, some for longer than zamok waits for an answer; and it counts
// what it is granted from when it made the call, so that it would have to ask again.
func queued(ctx context.Context, s *drivertest.Server, k locker.Kind, n int, settle time.Duration) error {
	if !ours(k) {
		return wait(ctx, settle)
	}
	set, err := keys.ForName("", "job")
	if err != nil {
		return err
	}
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); {
		if got, _ := s.MustDo("ZCARD", set.Queue()).(int64); got >= int64(n) {
			return nil
		}
		if err := wait(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d do not stand in the queue within a minute", n)
}
