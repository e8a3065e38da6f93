package locker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

// Zamok is the family of what this repository is about.
const Zamok = "zamok"

func zamokOnGoRedis() Kind {
	return zamokKind("goredis", func(addr string) (driver.Driver, func(), error) {
		c := onGoRedis(addr)
		return zamokgoredis.New(c), func() { _ = c.Close() }, nil
	})
}

func zamokOnRueidis() Kind {
	return zamokKind("rueidis", func(addr string) (driver.Driver, func(), error) {
		c, err := onRueidis(addr)
		if err != nil {
			return nil, nil, err
		}
		return zamokrueidis.New(c), c.Close, nil
	})
}

func zamokKind(on string, open func(addr string) (driver.Driver, func(), error)) Kind {
	return Kind{
		Name: "zamok/" + on, Family: Zamok, On: on, Sends: scripted(), Waits: true, Renews: true,
		Open: func(addr string, o Options) (Client, error) {
			d, closeBelow, err := open(addr)
			if err != nil {
				return nil, err
			}
			return newZamok(d, closeBelow, o)
		},
		Quorum: func(addrs []string) (Client, error) { return newQuorum(addrs, open) },
	}
}

type zamokClient struct {
	client  *zamok.Client
	options Options
	below   func()
}

func newZamok(d driver.Driver, below func(), o Options) (Client, error) {
	cfg := &zamok.Config{TTL: o.ttl(), GiveUp: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	if o.Apart {
		cfg.HandOver = -1
	}
	c, err := zamok.New(d, cfg)
	if err != nil {
		return nil, err
	}
	return &zamokClient{client: c, options: o, below: below}, nil
}

// newQuorum tells the servers that they belong together, and is a client of all. Without
// that their first minute would be the quarantine of servers that lost their data.
func newQuorum(addrs []string, open func(addr string) (driver.Driver, func(), error)) (Client, error) {
	var nodes []zamok.Node
	var closes []func()
	names := "60000 node0"
	for i := range addrs[1:] {
		names += fmt.Sprint(",node", i+1)
	}
	for i, addr := range addrs {
		d, closeBelow, err := open(addr)
		if err != nil {
			return nil, err
		}
		stamp := driver.Call{Script: lua.Stamp, Keys: []string{"zamok:node"}, Args: []string{names}, Limit: time.Second}
		if _, err := d.Eval(context.Background(), stamp); err != nil {
			return nil, err
		}
		nodes, closes = append(nodes, zamok.Node{Name: fmt.Sprint("node", i), Driver: d}), append(closes, closeBelow)
	}
	c, err := zamok.NewQuorum(nodes, &zamok.Config{Quarantine: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &zamokClient{client: c, below: func() {
		for _, f := range closes {
			f()
		}
	}}, nil
}

func (c *zamokClient) Of(name string) Take {
	lock := c.client.Mutex(name, nil).Lock
	switch c.options.Mode {
	case Reader:
		lock = c.client.RWMutex(name, nil).RLock
	case Writer:
		lock = c.client.RWMutex(name, nil).Lock
	case Permit:
		lock = c.client.Semaphore(name, c.options.Permits, nil).Acquire
	}
	return func(ctx context.Context) (Held, error) {
		l, err := lock(ctx)
		return zamokHeld{l}, err
	}
}

func (c *zamokClient) Close() {
	_ = c.client.Close()
	c.below()
}

type zamokHeld struct{ *zamok.Lease }

func (h zamokHeld) Lost() <-chan struct{} { return h.Context().Done() }
