package zamok_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestQuorumChaos is TestChaos on three members, of which one at a time hangs, is down,
// is cut off from its subscribers, or comes back without its data. When their clocks are
// apart it comes back with its data: fences are promised while a majority keeps its
// counters, or else its clocks.
func TestQuorumChaos(t *testing.T) {
	for _, seed := range chaosSeeds(t, 25) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inQuorum(t, 3, func(t *testing.T, all members) {
				c := newChaos(t, zamoktest.New(t, nil), seed)
				for _, s := range all {
					s.Intercept(c.fault)
					s.InterceptMessage(c.messageFault)
				}
				if c.apart = seed%2 == 0; c.apart {
					all.apart()
				}
				c.playQuorum(all)
			})
		})
	}
}

func (c *chaos) playQuorum(all members) {
	c.fight(all, all.client)
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	pass(10 * time.Second) // what is left of a quarantine, and of leases
	start := time.Now()
	l := lock(c.t, all.client(c.t).Mutex("job", nil))
	c.believes(l, false)
	c.leaves(l)
	release(c.t, l)
	if took := time.Since(start); took > 10*time.Second {
		c.t.Errorf("after the last fault it took %v", took)
	}
	pass(20 * time.Second)
	synctest.Wait()
	all.left(c.t)
	if c.holds < 10 {
		c.t.Errorf("only %d holds: this tried nothing", c.holds)
	}
}

// fight has five clients at one lock, while the members break.
func (c *chaos) fight(all members, client func(t *testing.T) *zamok.Client) {
	ctx, stop := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.breakMembers(ctx, all)
	}()
	workers := make(chan struct{}, 5)
	for range cap(workers) {
		m := client(c.t).Mutex("job", nil)
		go func() {
			c.lockAndWork(ctx, m)
			workers <- struct{}{}
		}()
	}
	for range cap(workers) {
		<-workers
	}
	<-done
}

// breakMembers breaks one member after another, and lets it come back.
func (c *chaos) breakMembers(ctx context.Context, all members) {
	for ctx.Err() == nil {
		pass(time.Duration(c.n(4000)) * time.Millisecond)
		long := time.Duration(c.n(5000)) * time.Millisecond
		s := all[c.n(len(all))]
		switch c.n(5) {
		case 0:
			s.Hang()
			pass(long)
			s.Unhang()
		case 1:
			s.Down(nil)
			pass(long)
			s.Up()
		case 2:
			s.Break()
			pass(long)
			s.Reconnect()
		case 3:
			if !c.apart {
				s.Wipe()
			}
			s.Restart()
			if c.fresh {
				all.stamp(c.t, s)
			}
			pass(4 * time.Second) // its quarantine
		}
	}
}

// apart sets the clocks an hour apart, so that a fence is no time.
func (all members) apart() {
	all[0].Step(time.Hour)
	all[2].Step(-time.Hour)
	pass(4 * time.Second) // which may begin a quarantine
}

// lockAndWork locks, works, and releases or dies, until ctx ends.
func (c *chaos) lockAndWork(ctx context.Context, m *zamok.Mutex) {
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, time.Duration(100+c.n(20000))*time.Millisecond)
		take := m.Lock
		if c.n(4) == 0 {
			take = m.TryLock
		}
		l, err := take(limit)
		if err != nil {
			cancel()
			pass(time.Duration(c.n(300)) * time.Millisecond)
			continue
		}
		c.believes(l, false)
		c.work(l)
		if c.n(10) > 0 { // else it forgets to
			c.leaves(l)
			_ = l.Release(limit)
		}
		cancel()
	}
}
