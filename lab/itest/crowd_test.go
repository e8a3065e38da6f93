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
	tickets  sync.Map // see spy
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

// Of an RWMutex, readers and writers crowd together; of a semaphore, two have a
// permit at a time.
func TestCase31CrowdOfMixedPatience(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, k leaseKind) {
		s := p.at(k.keyOf("job"))
		c := crowd{history: history{room: 1}}
		lasts, waiters := duration(t, "ZAMOK_ITEST_CROWD", 20*time.Second), crowdWaiters
		if k.name != mutexKind.name || p.short {
			lasts /= 2
		}
		short := time.Second
		if k.name == readerKind.name { // they go together, so a turn comes sooner
			short = 200 * time.Millisecond
		}
		of, rivals := k.of, k.rivals
		if k.name == permitKind.name {
			of, rivals = pairKind.of, []maker{pairKind.of}
			c.room, waiters = 2, 2*crowdWaiters
		}
		var clients []*zamok.Client
		for i := range 8 {
			clients = append(clients, clientOn(t, &spy{Driver: p.open(t, p.lib(i)), tickets: &c.tickets}, nil))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		for i := range waiters {
			wait := []time.Duration{short, 30 * time.Second, 10 * time.Minute}[i%3]
			take := of
			if i%2 == 1 {
				take = rivals[i/2%len(rivals)]
			}
			m := take(clients[i%len(clients)], "job", &zamok.MutexConfig{Wait: wait})
			all.Go(func() {
				for ctx.Err() == nil {
					c.once(t, fmt.Sprint("waiter ", i), m)
				}
			})
		}
		span(lasts)
		await(patience, func() bool { // a slow machine takes longer until that is a crowd
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.order) >= 100 && c.timeouts >= 10
		})
		stop()
		all.Wait()
		if k.taken(t, s, "job") {
			t.Error("the lock is left")
		}
		within(t, patience, "the queue is empty", func() bool { return !s.has(t, k.queue("job")) })
		c.checkOrder(t)
		c.checkIdle(t)
		t.Logf("%d holds, %d gave up", len(c.order), c.timeouts)
		if len(c.order) < 100 || c.timeouts < 10 {
			t.Error("that is no crowd")
		}
	})
}

// once waits, holds for 1 to 50 ms, and notes what it saw.
func (c *crowd) once(t *testing.T, who string, m taker) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	start := time.Now()
	l, err := m.Lock(ctx)
	c.mu.Lock()
	end := time.Now()
	c.attempts = append(c.attempts, hold{who: who, from: start, till: end})
	if err != nil {
		c.timeouts++
		c.mu.Unlock()
		// Who waits for a second may have no answer in it, on a machine that is proven
		// to have withheld a part of it.
		noTime := stalls.Between(start, end) > end.Sub(start)/10
		var held *zamok.HeldError
		if (!errors.As(err, &held) || held.Err != nil) && !(noTime && errors.Is(err, zamok.ErrUnavailable)) {
			t.Errorf("%s: %v", who, err)
		}
		return
	}
	c.order = append(c.order, granted{l.Token(), l.Fence()})
	c.mu.Unlock()
	_, reads := m.(reading)
	over := c.note(hold{who: who, fence: l.Fence(), reads: reads}, l)
	span(time.Millisecond + rand.N(50*time.Millisecond))
	over()
	if err := l.Release(ctx); err != nil {
		t.Errorf("%s: Release: %v", who, err)
	}
}

// ahead is by how much a fence may be later than the moment at which it was given,
// in µs: two blocks of them, which the goroutines of a client share.
const ahead = 2 * 4096

// checkOrder: fences are the order in which the lock was given, tickets the one
// in which they came. Who gave up has a ticket that was never served, which
// takes nothing from the order of the others. Nobody is served before one who stood
// in the queue then with an older ticket. One of a line stands there only when its
// client's turn is over, and one that is passed over stands there again: that must
// have lost its subscription.
func (c *crowd) checkOrder(t *testing.T) {
	t.Helper()
	slices.SortFunc(c.order, func(a, b granted) int { return int(a.fence - b.fence) })
	var last float64
	var lastToken string
	var lastFence int64
	known, late, again := 0, 0, 0
	for _, g := range c.order {
		found, ok := c.tickets.Load(g.token)
		if !ok || g.token == lastToken {
			continue // the lock was free and nobody waited, or it was passed on in a turn
		}
		s := found.(*standing)
		ticket, err := strconv.ParseFloat(s.ticket, 64)
		if err != nil {
			t.Fatal(err)
		}
		if ticket < last { // who came in one µs have one ticket
			late++
			if s.since+ahead < lastFence {
				t.Errorf("fence %d: ticket %.0f stood in the queue since %d and was served after %.0f, with fence %d", g.fence, ticket, s.since, last, lastFence)
			}
		}
		if s.client != nil {
			again++
			if s.client.subscribed.Load() < 2 {
				t.Errorf("fence %d: ticket %.0f was passed over while it was heard", g.fence, ticket)
			}
		}
		last, lastToken, lastFence = ticket, g.token, g.fence
		known++
	}
	t.Logf("of %d the place in the queue was seen; %d were served after a younger one, %d had lost their place", known, late, again)
	if known < 50 {
		t.Error("that shows no order")
	}
}

// checkIdle: between two holds the lock is free, or on its way, and that is not
// long where somebody waited all the time.
func (c *crowd) checkIdle(t *testing.T) {
	t.Helper()
	var longest time.Duration
	var before latest
	for _, x := range c.check(t) {
		if len(before) == c.room {
			from, till := before[c.room-1].till, x.from
			waited := slices.ContainsFunc(c.attempts, func(a hold) bool { return a.from.Before(from) && !a.till.Before(till) })
			if waited {
				longest = max(longest, counted(from, till))
			}
		}
		before.add(x, c.room)
	}
	t.Logf("the longest hand-over took %v", longest)
	if longest > factor*100*time.Millisecond {
		t.Errorf("idle for %v while somebody waited", longest)
	}
}
