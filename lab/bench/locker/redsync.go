package locker

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncKind waits by trying again after 50 to 250 ms, its default, but does not give up
// after 32 tries.
func redsyncKind() Kind {
	return Kind{
		Name: "redsync/goredis", Family: "redsync", On: "goredis", Sends: settled(), Peer: true, Waits: true,
		Open: func(addr string, o Options) (Client, error) {
			return newRedsync([]string{addr}, redsync.WithExpiry(o.ttl())), nil
		},
		Quorum: func(addrs []string) (Client, error) { return newRedsync(addrs), nil },
	}
}

type redsyncClient struct {
	*redsync.Redsync
	clients []*redis.Client
	options []redsync.Option
}

func newRedsync(addrs []string, options ...redsync.Option) *redsyncClient {
	c := &redsyncClient{options: append(options, redsync.WithTries(math.MaxInt))}
	var pools []redsyncredis.Pool
	for _, addr := range addrs {
		client := onGoRedis(addr)
		c.clients = append(c.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	c.Redsync = redsync.New(pools...)
	return c
}

func (c *redsyncClient) Of(name string) Take {
	return func(ctx context.Context) (Held, error) {
		// The mutex is also what is held, so there is one for each time.
		m := c.NewMutex("redsync:"+name, c.options...)
		return redsyncHeld{Mutex: m}, m.LockContext(ctx)
	}
}

func (c *redsyncClient) Close() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

type redsyncHeld struct {
	*redsync.Mutex
	noSign
}

func (h redsyncHeld) Release(ctx context.Context) error {
	ok, err := h.UnlockContext(ctx)
	if err == nil && !ok {
		err = errors.New("redsync: not unlocked")
	}
	return err
}
