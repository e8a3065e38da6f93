package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// TestLineChaos is TestChaos with several goroutines of each client, which pass the
// lock on among themselves.
func TestLineChaos(t *testing.T) {
	for _, seed := range chaosSeeds(t, 25) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, &zamok.Config{TTL: 3 * time.Second, HandOver: 50 * time.Millisecond}, func(t *testing.T, s *zamoktest.Server) {
				c := newChaos(t, s, seed)
				lines := &chaosLines{chaos: c, clients: []*zamok.Client{s.Client(), s.Client()}}
				c.play(lines.crowd)
				if lines.passed < 100 {
					t.Errorf("only %d passes: this tried nothing", lines.passed)
				}
			})
		})
	}
}

type chaosLines struct {
	*chaos
	clients []*zamok.Client
	crowds  atomic.Int64
	last    int64 // guarded by the lock
	passed  int
}

// crowd is some goroutines of one client.
func (c *chaosLines) crowd(ctx context.Context) {
	client := c.clients[int(c.crowds.Add(1))%len(c.clients)]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				c.cycle(ctx, client.RWMutex("job", nil))
			}
		})
	}
	all.Wait()
}

func (c *chaosLines) cycle(ctx context.Context, m *zamok.RWMutex) {
	limit, cancel := context.WithTimeout(ctx, time.Duration(1+c.n(20000))*time.Millisecond)
	defer cancel()
	take := m.Lock
	if c.n(30) == 0 {
		take = m.TryLock
	}
	l, err := take(limit)
	if err != nil {
		pass(time.Duration(c.n(300)) * time.Millisecond)
		return
	}
	c.believes(l, false)
	if l.Fence() == c.last+1 {
		c.passed++
	}
	c.last = l.Fence()
	switch c.n(40) {
	case 0:
		c.work(l)
	case 1:
		_ = l.Check(limit)
	case 2:
		_ = l.Extend(limit, 5*time.Second)
	case 3:
		c.turns(l)
		_ = l.Downgrade(limit)
	case 4:
		_ = l.Token()
	case 5:
		return // it forgets to release
	default:
		pass(time.Duration(c.n(5000)) * time.Microsecond)
	}
	c.leaves(l)
	_ = l.Release(limit)
}

// TestLinesInRealTime: the same with real goroutines, for the race detector.
func TestLinesInRealTime(t *testing.T) {
	s := memory.New()
	var holders atomic.Int64
	var last int64 // guarded by the lock
	var all sync.WaitGroup
	for range 3 {
		c, err := zamok.New(s, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Mutex("job", nil)
		for i := range 16 {
			all.Go(func() {
				for n := range 300 {
					ctx, cancel := context.WithCancel(t.Context())
					if (n+i)%10 == 0 { // some go away at any moment
						go cancel()
					}
					l, err := m.Lock(ctx)
					if err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
						cancel()
						continue
					}
					if holders.Add(1) != 1 || l.Fence() <= last {
						t.Errorf("%d hold it; fence %d after %d", holders.Load(), l.Fence(), last)
					}
					last = l.Fence()
					if n%50 == 0 {
						_ = l.Token()
					}
					holders.Add(-1)
					if err := l.Release(ctx); err != nil {
						t.Error(err)
					}
					cancel()
				}
			})
		}
	}
	all.Wait()
	if kind := s.Type("lock:job"); kind != "none" {
		t.Error("the lock is left")
	}
}
