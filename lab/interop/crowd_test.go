package interop

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
)

const (
	crowdOurs   = 2  // goroutines of each of two clients of zamok
	crowdCounts = 40 // how often they count at least, together
	crowdTurns  = 6  // and how often the lock goes from one kind to the other
)

// noUpdateIsLost: two processes of the other library and two clients of zamok
// count under one lock in a way that loses an update whenever two of them overlap.
func noUpdateIsLost(t *testing.T, p pair) {
	others := []*process{p.other, p.peer.start(t, p.server, "free")}
	rdb := p.redis(t)
	var group sync.WaitGroup
	for range 2 {
		m := p.shared(t, p.key, 0)
		for range crowdOurs {
			group.Go(func() { countByDo(t, m, rdb) })
		}
	}
	for i, other := range others {
		other.order("count", p.key, fmt.Sprintf("peer%d", i))
	}
	mixed(t, p.server)
	p.MustDo("SET", "stop", "now")
	for _, other := range others {
		if got := other.answer(); got != "yes" {
			t.Errorf("count: %s", got)
		}
	}
	group.Wait()
	counted(t, p.server)
}

// countByDo is count for zamok.
func countByDo(t *testing.T, m *zamok.Mutex, rdb *redis.Client) {
	for i := 0; !stopped(t.Context(), rdb); i++ {
		err := m.Do(t.Context(), func(ctx context.Context) error { return bump(ctx, rdb, "zamok") })
		if err != nil {
			t.Errorf("Do: %v", err)
			return
		}
		rest(i)
	}
}

// mixed waits until the two kinds have had their turns.
func mixed(t *testing.T, s server) {
	t.Helper()
	within(t, patience, "the lock goes from one kind to the other and back, again and again", func() bool {
		turns, _ := s.MustDo("LRANGE", "turns", "0", "-1").([]any)
		changes := 0
		for i, turn := range turns {
			if i > 0 && (turn == "zamok") != (turns[i-1] == "zamok") {
				changes++
			}
		}
		return changes >= crowdTurns && len(turns) >= crowdCounts
	})
}

// counted wants the counter to have lost nothing.
func counted(t *testing.T, s server) {
	t.Helper()
	n, _ := s.MustDo("LLEN", "turns").(int64)
	if v := s.get(t, "counter"); v != strconv.FormatInt(n, 10) {
		t.Errorf("the counter is %s after %d increments", v, n)
	}
}
