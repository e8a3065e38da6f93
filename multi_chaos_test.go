package zamok_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestMultiChaos is TestChaos, with workers that want the lock alone, or together with
// others that come before it, behind it, or both.
func TestMultiChaos(t *testing.T) {
	for _, seed := range chaosSeeds(t, 25) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, &zamok.Config{TTL: 3 * time.Second}, func(t *testing.T, s *zamoktest.Server) {
				c := newChaos(t, s, seed)
				c.play(c.workerOfSeveral)
				if left := ofLocks(s); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		})
	}
}

// workerOfSeveral is worker by Multi.
func (c *chaos) workerOfSeveral(ctx context.Context) {
	client := c.s.Client()
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, time.Duration(100+c.n(20000))*time.Millisecond)
		names := []string{"job"}
		for _, other := range []string{"a", "b", "y", "z"} {
			if c.n(3) == 0 {
				names = append(names, other)
			}
		}
		take := client.Multi(names, nil).Lock
		if c.n(4) == 0 {
			take = client.Multi(names, nil).TryLock
		}
		h, err := take(limit)
		if err != nil {
			cancel()
			pass(time.Duration(c.n(300)) * time.Millisecond)
			continue
		}
		l := h.Lease("job")
		c.believes(l, false)
		select {
		case <-time.After(time.Duration(c.n(6000)) * time.Millisecond):
		case <-h.Context().Done():
		}
		if c.n(10) > 0 { // else it forgets to
			c.leaves(l)
			_ = h.Release(limit)
		}
		cancel()
	}
}
