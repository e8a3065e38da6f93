package scene

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// crowd are clients that want one lock, again and again.
type crowd struct {
	takes []locker.Take // one for each who waits
	hold  time.Duration
	pace  func(ctx context.Context, n int) error // when n have begun and more shall. Nil: at once
	room  int                                    // how many may hold at a time; more is a mistake. 0: it is not known

	mu      sync.Mutex // of what follows
	holders int
	wrong   bool // more held than may
	last    int  // who released last; -1: nobody
	at      time.Time
	tally
}

// tally is what was seen in a span.
type tally struct {
	passes  []time.Duration // from the call of a release to when another holds
	waits   []time.Duration // from the call to when it is held
	taken   []int           // by who
	waiting []time.Time     // by who: since when; zero: it does not
}

func newCrowd(takes []locker.Take, hold time.Duration, room int) *crowd {
	return &crowd{takes: takes, hold: hold, room: room, last: -1,
		tally: tally{taken: make([]int, len(takes)), waiting: make([]time.Time, len(takes))}}
}

// play lets them want it until ctx ends. The first error ends all. Those who wait then
// have another second until they give up: who is served has nothing to clean up behind.
func (c *crowd) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, giveUp) })
	var all sync.WaitGroup
	for who, take := range c.takes {
		if c.pace != nil {
			if err := c.pace(ctx, who); err != nil {
				cancel(err)
				break
			}
		}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := c.once(ctx, patient, who, take); err != nil && ctx.Err() == nil {
					cancel(fmt.Errorf("waiter %d: %w", who, err))
				}
			}
		})
	}
	<-ctx.Done()
	all.Wait()
	if err := context.Cause(ctx); err != context.Canceled {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong {
		return fmt.Errorf("more than %d held at a time", c.room)
	}
	return nil
}

// once waits until patience ends, and holds until ctx does at the latest.
func (c *crowd) once(ctx, patience context.Context, who int, take locker.Take) error {
	start := time.Now()
	c.mu.Lock()
	c.waiting[who] = start
	c.mu.Unlock()
	h, err := take(patience)
	if err != nil {
		return err
	}
	c.held(who, start)
	if c.hold > 0 {
		_ = wait(ctx, c.hold)
	}
	c.mu.Lock()
	c.holders--
	c.last, c.at = who, time.Now()
	c.mu.Unlock()
	return h.Release(context.WithoutCancel(ctx))
}

func (c *crowd) held(who int, since time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders++; c.room > 0 && c.holders > c.room {
		c.wrong = true
	}
	// Who takes it again itself hands nothing over. Polling libraries mostly do that: their
	// releaser is back before anybody else looks.
	if c.last >= 0 && c.last != who {
		c.passes = append(c.passes, now.Sub(c.at))
	}
	c.last = -1
	c.waits = append(c.waits, now.Sub(since))
	c.waiting[who] = time.Time{}
	c.taken[who]++
}

// reset begins a span. What is waited for since before it counts as a whole.
func (c *crowd) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passes, c.waits, c.taken = nil, nil, make([]int, len(c.takes))
}

// end ends a span: who waits still has waited that long.
func (c *crowd) end() tally {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	t.waits = slices.Clone(t.waits)
	for _, since := range t.waiting {
		if !since.IsZero() {
			t.waits = append(t.waits, now.Sub(since))
		}
	}
	slices.Sort(t.waits)
	t.passes = slices.Sorted(slices.Values(t.passes))
	t.taken = slices.Clone(t.taken)
	return t
}

// during plays, and measures for a span after they have warmed up.
func (c *crowd) during(ctx context.Context, s *drivertest.Server, warm, span time.Duration) (t tally, did usage, took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.play(ctx) }()
	defer func() {
		cancel()
		if e := <-ended; err == nil {
			err = e
		}
	}()
	if err = wait(ctx, warm); err != nil {
		return
	}
	before := usageOf(s)
	c.reset()
	start := time.Now()
	select {
	case <-time.After(span):
	case e := <-ended:
		ended <- e
		return t, did, 0, e
	}
	t, took = c.end(), time.Since(start)
	return t, usageOf(s).since(before), took, nil
}

// acquired is how often the lock was taken.
func (t tally) acquired() int {
	n := 0
	for _, k := range t.taken {
		n += k
	}
	return n
}

// jain is Jain's index of how equal the shares are: 1 if they are, 1/n if one has all.
func (t tally) jain() float64 {
	var sum, squares float64
	for _, n := range t.taken {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(t.taken)) * squares)
}

// quantile of a sorted list; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// clientsOf opens n clients, one for each who wants the lock of that name.
func clientsOf(k locker.Kind, addr, name string, n int, o func(i int) locker.Options) (takes []locker.Take, closeAll func(), err error) {
	var clients []locker.Client
	closeAll = func() {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(c.Close)
		}
		all.Wait()
	}
	for i := range n {
		c, err := k.Open(addr, o(i))
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, c)
		takes = append(takes, c.Of(name))
	}
	return takes, closeAll, nil
}

func plain(int) locker.Options { return locker.Options{} }

// report adds what the crowd of a scenario saw.
func (e *Env) report(k locker.Kind, t tally, did usage, took time.Duration) {
	n := float64(t.acquired())
	if n == 0 {
		return
	}
	e.add(k, "p50 µs", micros(quantile(t.passes, 0.50)))
	e.add(k, "p99 µs", micros(quantile(t.passes, 0.99)))
	e.add(k, "longest wait s", quantile(t.waits, 1).Seconds())
	// A round is the time in which each would have had one turn. In units of it the longest
	// wait tells a queue from luck, however fast or slow the machine is.
	turns := took.Seconds() / n * float64(len(t.taken))
	e.add(k, "longest/turns", quantile(t.waits, 1).Seconds()/turns)
	shares := slices.Sorted(slices.Values(t.taken))
	e.add(k, "fewest", float64(shares[0]))
	e.add(k, "most", float64(shares[len(shares)-1]))
	e.add(k, "fewest/most", float64(shares[0])/float64(shares[len(shares)-1]))
	e.add(k, "jain", t.jain())
	e.add(k, "acquisitions/s", n/took.Seconds())
	commands, requests, _, _ := did.work(k)
	e.add(k, "commands", commands/n)
	e.add(k, "requests", requests/n)
	e.add(k, "server µs", micros(did.cpu)/n)
}

// playHandOver has 16 clients in one process, so that one clock says when one called its
// release and when the next one held. Each has connections of its own, as if it were a
// process: none of them passes anything on to another but through the server.
func playHandOver(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	takes, done, err := clientsOf(k, s.Addr(), "job", 16, plain)
	if err != nil {
		return err
	}
	defer done()
	t, did, took, err := newCrowd(takes, 5*time.Millisecond, 1).during(ctx, s, e.span(500*time.Millisecond), e.span(3500*time.Millisecond))
	if err != nil {
		return err
	}
	e.report(k, t, did, took)
	shares := slices.Sorted(slices.Values(t.taken))
	slices.Reverse(shares)
	for i, n := range shares { // in units of what each would have
		e.addAt(k, "share", i+1, float64(n*len(shares))/float64(max(1, t.acquired())))
	}
	return nil
}

// playCrowd holds shortly, so that what the server does is a larger part of a turn.
func playCrowd(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	takes, done, err := clientsOf(k, s.Addr(), "job", 64, plain)
	if err != nil {
		return err
	}
	defer done()
	t, did, took, err := newCrowd(takes, time.Millisecond, 1).during(ctx, s, e.span(500*time.Millisecond), e.span(2*time.Second))
	if err == nil {
		e.report(k, t, did, took)
	}
	return err
}
