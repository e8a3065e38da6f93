package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis/rueidislock"

	"github.com/zamok-go/zamok"
)

// host is what one process of a program has.
type host struct {
	rdb    *redis.Client
	pools  []redsyncredis.Pool // one for each server
	locker rueidislock.Locker
	client *zamok.Client
}

func newHost(t *testing.T, servers []server) *host {
	t.Helper()
	h := &host{
		rdb: servers[0].redis(t), locker: newTestLocker(t, servers[0], 5*time.Second, 1),
		client: servers[0].zamok(t, zamok.Config{}),
	}
	for _, s := range servers {
		h.pools = append(h.pools, goredis.NewPool(s.redis(t)))
	}
	return h
}

// version is one version of a program, which does its work under the lock.
type version func(ctx context.Context, h *host, work work) error

// ours is a version that has zamok alone.
func ours(f func(context.Context, *zamok.Client, work) error) version {
	return func(ctx context.Context, h *host, work work) error { return f(ctx, h.client, work) }
}

func withRedsync(ctx context.Context, h *host, work work) error {
	return redsyncBefore(ctx, h.rdb, work)
}

func withRedislock(ctx context.Context, h *host, work work) error {
	return redislockBefore(ctx, h.rdb, work)
}

func withRueidislock(ctx context.Context, h *host, work work) error {
	return untilHeard(ctx, func(ctx context.Context, got func() bool) error {
		return rueidislockBefore(ctx, h.locker, func(ctx context.Context) error {
			if !got() {
				return context.Canceled
			}
			return work(ctx)
		})
	})
}

func withQuorum(ctx context.Context, h *host, work work) error {
	return quorumBefore(ctx, h.pools, work)
}

func withQuorumBridge(ctx context.Context, h *host, work work) error {
	return quorumBridge(ctx, h.pools, h.client, work)
}

// TestVersionsSideBySide runs each two versions of a program that may meet in a
// rolling deployment.
func TestVersionsSideBySide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		servers       int
		before, after version
	}{
		{"redsync and Key", 1, withRedsync, ours(redsyncAfter)},
		{"redislock and Key", 1, withRedislock, ours(redislockAfter)},
		{"rueidislock and Key", 1, withRueidislock, ours(rueidislockAfter)},
		{"redislock and bridge", 1, withRedislock, ours(bridge)},
		{"Key and bridge", 1, ours(redislockAfter), ours(bridge)},
		{"bridge and default", 1, ours(bridge), ours(bridgeAfter)},
		{"quorum and bridge", 3, withQuorum, withQuorumBridge},
		{"bridge of a quorum and default", 3, withQuorumBridge, ours(bridgeAfter)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var servers []server
			for range c.servers {
				servers = append(servers, startServer(t))
			}
			sideBySide(t, servers, c.before, c.after)
		})
	}
}

// sideBySide has two processes of each version count until both kinds have had
// their turns.
func sideBySide(t *testing.T, servers []server, before, after version) {
	t.Helper()
	s := servers[0]
	rdb := s.redis(t)
	done := make(chan error, 4)
	run := func(id string, v version) {
		h := newHost(t, servers)
		go func() {
			var err error
			for i := 0; err == nil && !stopped(t.Context(), rdb); i++ {
				err = v(t.Context(), h, func(ctx context.Context) error { return bump(ctx, rdb, id) })
				if gaveUp(err) {
					err = nil
				}
				rest(i)
			}
			done <- err
		}()
	}
	for range cap(done) / 2 {
		run("before", before)
		run("zamok", after)
	}
	mixed(t, s)
	s.MustDo("SET", "stop", "now")
	for range cap(done) {
		if err := receive(t, done, "end of a version"); err != nil {
			t.Error(err)
		}
	}
	counted(t, s)
}

// gaveUp: the old libraries stop waiting after so many tries, or after one TTL,
// which is no harm to the work.
func gaveUp(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || errors.Is(err, context.DeadlineExceeded)
}
