package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// crowd is case 31: patient and impatient waiters of several processes' worth
// of clients, and what each of them saw.
type crowd struct {
	history
	tickets  sync.Map // token → ticket
	mu       sync.Mutex
	order    []granted
	attempts []hold // from the call to its end, whatever that was
	timeouts int
}

type granted struct {
	token string
	fence int64
}

const crowdWaiters = 40

func TestCase31CrowdOfMixedPatience(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		var c crowd
		var clients []*zamok.Client
		for range 8 {
			clients = append(clients, clientOn(t, &spy{Driver: lib.new(t, s.URL()), tickets: &c.tickets}, nil))
		}
		ctx, stop := context.WithTimeout(t.Context(), duration(t, "ZAMOK_ITEST_CROWD", 20*time.Second))
		defer stop()
		var all sync.WaitGroup
		for i := range crowdWaiters {
			wait := []time.Duration{500 * time.Millisecond, 30 * time.Second, 10 * time.Minute}[i%3]
			m := clients[i%len(clients)].Mutex("job", &zamok.MutexConfig{Wait: wait})
			all.Go(func() {
				for ctx.Err() == nil {
					c.once(t, fmt.Sprint("waiter ", i), m)
				}
			})
		}
		all.Wait()
		if s.has(t, "lock:job") {
			t.Error("the lock is left")
		}
		within(t, patience, "the queue is empty", func() bool { return !s.has(t, queue("job")) })
		c.checkOrder(t)
		c.checkIdle(t)
		t.Logf("%d holds, %d gave up", len(c.order), c.timeouts)
		if len(c.order) < 100 || c.timeouts < 10 {
			t.Error("that is no crowd")
		}
	})
}

// once waits, holds for 1 to 50 ms, and notes what it saw.
func (c *crowd) once(t *testing.T, who string, m *zamok.Mutex) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	start := time.Now()
	l, err := m.Lock(ctx)
	c.mu.Lock()
	c.attempts = append(c.attempts, hold{who: who, from: start, till: time.Now()})
	if err != nil {
		c.timeouts++
		c.mu.Unlock()
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Err != nil {
			t.Errorf("%s: %v", who, err)
		}
		return
	}
	c.order = append(c.order, granted{l.Token(), l.Fence()})
	c.mu.Unlock()
	end := c.held(who, l)
	span(time.Millisecond + rand.N(50*time.Millisecond))
	end()
	if err := l.Release(ctx); err != nil {
		t.Errorf("%s: Release: %v", who, err)
	}
}

// checkOrder: fences are the order in which the lock was given, tickets the one
// in which they came. Who gave up has a ticket that was never served, which
// takes nothing from the order of the others.
func (c *crowd) checkOrder(t *testing.T) {
	t.Helper()
	slices.SortFunc(c.order, func(a, b granted) int { return int(a.fence - b.fence) })
	var last float64
	for _, g := range c.order {
		text, ok := c.tickets.Load(g.token)
		if !ok {
			continue // the lock was free and nobody waited
		}
		ticket, err := strconv.ParseFloat(text.(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		if ticket <= last {
			t.Errorf("fence %d: ticket %.0f was served after %.0f", g.fence, ticket, last)
		}
		last = ticket
	}
}

// checkIdle: between two holds the lock is free, or on its way, and that is not
// long where somebody waited all the time.
func (c *crowd) checkIdle(t *testing.T) {
	t.Helper()
	holds := c.check(t)
	var longest time.Duration
	for i := 1; i < len(holds); i++ {
		from, till := holds[i-1].till, holds[i].from
		waited := slices.ContainsFunc(c.attempts, func(a hold) bool { return a.from.Before(from) && !a.till.Before(till) })
		if waited {
			longest = max(longest, till.Sub(from))
		}
	}
	t.Logf("the longest hand-over took %v", longest)
	if longest > factor*100*time.Millisecond {
		t.Errorf("idle for %v while somebody waited", longest)
	}
}
