package scene

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// playCutOff cuts all holders off at one moment, each from a server of its own: they do
// nothing then, so none disturbs another.
func playCutOff(ctx context.Context, e *Env) error {
	ttl := 5 * time.Second
	if e.Quick {
		ttl = time.Second
	}
	var all sync.WaitGroup
	errs := make([]error, len(e.Kinds))
	cuts := make([]cut, len(e.Kinds))
	for i, k := range e.Kinds {
		s := e.server()
		proxy := drivertest.StartProxy(e.host, s.Addr())
		all.Go(func() {
			cuts[i], errs[i] = cutOff(ctx, k, proxy, s.Addr(), ttl, time.Duration(e.Rep)*ttl/6)
		})
	}
	all.Wait()
	for i, k := range e.Kinds {
		if errs[i] != nil {
			return fmt.Errorf("%s: %w", k.Name, errs[i])
		}
		e.add(k, "overlap ms", millis(max(0, cuts[i].stops.Sub(cuts[i].next))))
		e.add(k, "stops before ms", millis(max(0, cuts[i].next.Sub(cuts[i].stops))))
		e.add(k, "next after s", cuts[i].next.Sub(cuts[i].at).Seconds())
	}
	return nil
}

// Who believes is a matter of what a library says: zamok ends the context of the lease and
// rueidislock its own. Redsync and redislock say nothing, so they take no part: their holder
// believes until it asks.

// cut is what happened: the holder was cut off, it was told to stop, and the next one
// was told that it holds.
type cut struct{ at, stops, next time.Time }

// cutOff cuts a holder off after a while, which is another in each repetition: it may be
// soon after a renewal or just before the next.
func cutOff(ctx context.Context, k locker.Kind, proxy *drivertest.Proxy, addr string, ttl, after time.Duration) (c cut, err error) {
	holder, err := k.Open(proxy.Addr(), locker.Options{TTL: ttl})
	if err != nil {
		return c, err
	}
	defer holder.Close()
	defer proxy.Resume()
	next, err := k.Open(addr, locker.Options{TTL: ttl})
	if err != nil {
		return c, err
	}
	defer next.Close()
	h, err := holder.Of("job")(ctx)
	if err != nil {
		return c, err
	}
	got := make(chan error, 1)
	go func() {
		_, err := next.Of("job")(ctx)
		c.next = time.Now()
		got <- err
	}()
	if err := wait(ctx, after); err != nil {
		return c, err
	}
	proxy.Blackhole()
	c.at = time.Now()
	limit := time.After(6 * ttl)
	lost := h.Lost()
	for lost != nil || got != nil {
		select {
		case <-lost:
			c.stops, lost = time.Now(), nil
		case err := <-got:
			if got = nil; err != nil {
				return c, err
			}
		case <-limit:
			return c, fmt.Errorf("after %v: told to stop: %v, next: %v", 6*ttl, lost == nil, got == nil)
		}
	}
	return c, nil
}
