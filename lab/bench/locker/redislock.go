package locker

import (
	"context"
	"time"

	"github.com/bsm/redislock"
)

// redislockKind waits by trying again each 10 ms: it has no default, and its example
// has 100 ms. The time limit is far: it gives up after a TTL otherwise.
func redislockKind() Kind {
	return Kind{
		Name: "redislock/goredis", Family: "redislock", On: "goredis", Sends: scripted(), Peer: true, Waits: true,
		Open: func(addr string, o Options) (Client, error) {
			rdb := onGoRedis(addr)
			return &redislockClient{Client: redislock.New(rdb), ttl: o.ttl(), close: func() { _ = rdb.Close() }}, nil
		},
	}
}

type redislockClient struct {
	*redislock.Client
	ttl   time.Duration
	close func()
}

func (c *redislockClient) Of(name string) Take {
	key, options := "redislock:"+name, &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)}
	return func(ctx context.Context) (Held, error) {
		patient, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		l, err := c.Obtain(patient, key, c.ttl, options)
		return redislockHeld{Lock: l}, err
	}
}

func (c *redislockClient) Close() { c.close() }

type redislockHeld struct {
	*redislock.Lock
	noSign
}
