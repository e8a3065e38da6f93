package locker

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// Raw is what one writes by hand: SET NX PX, and a script that compares and deletes. It
// has no fence, no queue, no renewal, and it does not wait.
const Raw = "raw"

const compareAndDelete = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

var errHeld = errors.New("held")

func rawOnGoRedis() Kind {
	return Kind{Name: "raw/goredis", Family: Raw, On: "goredis", Sends: settled(), Open: func(addr string, o Options) (Client, error) {
		c, script := onGoRedis(addr), redis.NewScript(compareAndDelete)
		return &raw{
			set: func(ctx context.Context, key, token string) error {
				ok, err := c.SetNX(ctx, key, token, o.ttl()).Result()
				if err == nil && !ok {
					err = errHeld
				}
				return err
			},
			del: func(ctx context.Context, key, token string) error {
				return script.Run(ctx, c, []string{key}, token).Err()
			},
			close: func() { _ = c.Close() },
		}, nil
	}}
}

func rawOnRueidis() Kind {
	return Kind{Name: "raw/rueidis", Family: Raw, On: "rueidis", Sends: settled(), Open: func(addr string, o Options) (Client, error) {
		c, err := onRueidis(addr)
		if err != nil {
			return nil, err
		}
		script := rueidis.NewLuaScript(compareAndDelete)
		return &raw{
			set: func(ctx context.Context, key, token string) error {
				return c.Do(ctx, c.B().Set().Key(key).Value(token).Nx().PxMilliseconds(o.ttl().Milliseconds()).Build()).Error()
			},
			del: func(ctx context.Context, key, token string) error {
				return script.Exec(ctx, c, []string{key}, []string{token}).Error()
			},
			close: c.Close,
		}, nil
	}}
}

type raw struct {
	calls    atomic.Int64
	set, del func(ctx context.Context, key, token string) error
	close    func()
}

func (r *raw) Of(name string) Take {
	key := "raw:" + name
	return func(ctx context.Context) (Held, error) {
		h := &rawHeld{of: r, key: key, token: "token" + strconv.FormatInt(r.calls.Add(1), 10)}
		return h, r.set(ctx, key, h.token)
	}
}

func (r *raw) Close() { r.close() }

type rawHeld struct {
	noSign
	of         *raw
	key, token string
}

func (h *rawHeld) Release(ctx context.Context) error { return h.of.del(ctx, h.key, h.token) }
