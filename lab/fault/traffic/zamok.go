package traffic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// Member is the name of a quorum's member.
func Member(i int) string { return fmt.Sprint("member", i) }

// client is an Engine: a client of zamok.
type client struct {
	*zamok.Client
	plan   *Plan
	shut   []func() // the clients of the libraries below
	handed sync.Map // fence to nothing, of what the last holder passed on
}

// newClient makes the client of that number in its process.
func newClient(ctx context.Context, p *Plan, number int) (*client, error) {
	c := &client{plan: p}
	cfg := &zamok.Config{
		TTL: p.TTL, GiveUp: p.GiveUp, Quarantine: p.Quarantine, WaitReplicas: p.Replicas,
		Name: p.Proc, Logger: slog.New(slog.DiscardHandler),
		Trace: &zamok.Trace{Acquired: c.acquired},
	}
	var err error
	if len(p.Target.Members) > 0 {
		c.Client, err = c.quorum(ctx, number, cfg)
	} else {
		var d driver.Driver
		if d, err = c.open(ctx, p.Target, number); err == nil {
			c.Client, err = zamok.New(d, cfg)
		}
	}
	if err != nil {
		c.shutAll()
		return nil, err
	}
	return c, nil
}

func (c *client) quorum(ctx context.Context, number int, cfg *zamok.Config) (*zamok.Client, error) {
	nodes := make([]zamok.Node, len(c.plan.Target.Members))
	for i := range nodes {
		d, err := c.open(ctx, c.plan.Target.member(i), number+i)
		if err != nil {
			return nil, err
		}
		nodes[i] = zamok.Node{Name: Member(i), Driver: d}
	}
	return zamok.NewQuorum(nodes, cfg)
}

func (c *client) open(ctx context.Context, to Target, library int) (driver.Driver, error) {
	d, shut, err := to.open(ctx, library)
	if err != nil {
		return nil, err
	}
	c.shut = append(c.shut, shut)
	return tap{d}, nil
}

func (c *client) shutAll() {
	for _, shut := range c.shut {
		shut()
	}
}

func (c *client) Close() error {
	err := c.Client.Close()
	c.shutAll()
	return err
}

func (c *client) acquired(i zamok.AcquiredInfo) {
	if i.HandedOver {
		c.handed.Store(i.Fence, nil)
	}
}

// wasHanded reports whether the last holder passed on the lease of that fence.
func (c *client) wasHanded(fence int64) bool {
	_, ok := c.handed.LoadAndDelete(fence)
	return ok
}

func (c *client) Take(ctx context.Context, w Want) (Lease, error) {
	ctx, asked := inquire(ctx, w.Queued)
	l, err := c.take(w)(ctx)
	if err != nil {
		return nil, err
	}
	handed := c.wasHanded(l.Fence())
	return lease{l, handed, handed && asked.sent.Load() == 0}, nil
}

func (c *client) take(w Want) func(context.Context) (*zamok.Lease, error) {
	m := c.Mutex(w.Name, &zamok.MutexConfig{MinHold: w.Least, MaxHold: w.Most})
	wait, try := m.Lock, m.TryLock
	switch w.Kind {
	case history.Reader:
		m := c.RWMutex(w.Name, nil)
		wait, try = m.RLock, m.TryRLock
	case history.Writer:
		m := c.RWMutex(w.Name, nil)
		wait, try = m.Lock, m.TryLock
	case history.Permit:
		s := c.Semaphore(w.Name, w.Limit, nil)
		wait, try = s.Acquire, s.TryAcquire
	}
	if w.Wait {
		return wait
	}
	return try
}

// lease is a Lease. One that was handed over was passed on within its client if nothing
// was sent for it.
type lease struct {
	*zamok.Lease
	handed, passed bool
}

// write writes a value, its fence, and how often that value was written.
var write = zamok.NewScript("write", `
local times = redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
return redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. FENCE .. ' ' .. times)
`)

func (l lease) Write(ctx context.Context, key string, value int64) error {
	_, err := l.Run(ctx, write, []string{key, "times:" + key}, value)
	if errors.Is(err, zamok.ErrUnavailable) && !errors.Is(err, zamok.ErrUnknown) {
		return zamok.ErrReleased // nothing ran
	}
	return err
}
