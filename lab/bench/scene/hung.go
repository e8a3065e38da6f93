package scene

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// playHung stops a server's process after the first cycles: its connections stay open and
// nothing is answered, which costs a client more than a server that is gone.
func playHung(ctx context.Context, e *Env) error {
	var nodes []*drivertest.Server
	var addrs []string
	for range 3 {
		s := e.server()
		nodes, addrs = append(nodes, s), append(addrs, s.Addr())
	}
	for _, k := range e.Kinds {
		if e.Quick && k.Peer {
			continue // ten seconds
		}
		c, err := k.Quorum(addrs)
		if err != nil {
			return err
		}
		err = e.withHung(ctx, k, c.Of("job-"+k.Family+k.On), nodes[0])
		c.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	return nil
}

func (e *Env) withHung(ctx context.Context, k locker.Kind, take locker.Take, node *drivertest.Server) error {
	for range 5 {
		if err := cycle(ctx, take); err != nil {
			return err
		}
	}
	node.Pause()
	defer node.Resume()
	times := e.count(100)
	if k.Peer {
		times = 1 // it takes seconds
	}
	var locks, releases []time.Duration
	for range times {
		start := time.Now()
		h, err := take(ctx)
		if err != nil {
			return err
		}
		locked := time.Now()
		if err := h.Release(ctx); err != nil {
			return err
		}
		locks, releases = append(locks, locked.Sub(start)), append(releases, time.Since(locked))
	}
	slices.Sort(locks)
	slices.Sort(releases)
	e.add(k, "lock ms", millis(quantile(locks, 0.5)))
	e.add(k, "slowest lock ms", millis(quantile(locks, 1)))
	e.add(k, "release ms", millis(quantile(releases, 0.5)))
	e.add(k, "slowest release ms", millis(quantile(releases, 1)))
	return nil
}
