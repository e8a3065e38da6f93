package interop

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis/rueidislock"

	"github.com/zamok-go/zamok"
)

// The code of docs/migration.md: a program's versions, one after the other. Which
// may run side by side is tried in versions_test.go.

type work = func(ctx context.Context) error

func redsyncBefore(ctx context.Context, rdb *redis.Client, work work) error {
	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex("billing", redsync.WithExpiry(8*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return work(ctx)
}

func redsyncAfter(ctx context.Context, client *zamok.Client, work work) error {
	billing := client.Mutex("billing", &zamok.MutexConfig{Key: "billing", TTL: 8 * time.Second})
	return billing.Do(ctx, work)
}

func redislockBefore(ctx context.Context, rdb *redis.Client, work work) error {
	retry := redislock.LinearBackoff(100 * time.Millisecond)
	lock, err := redislock.Obtain(ctx, rdb, "locks/billing", 8*time.Second, &redislock.Options{RetryStrategy: retry})
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return work(ctx)
}

func redislockAfter(ctx context.Context, client *zamok.Client, work work) error {
	billing := client.Mutex("billing", &zamok.MutexConfig{Key: "locks/billing", TTL: 8 * time.Second})
	return billing.Do(ctx, work)
}

func rueidislockBefore(ctx context.Context, locker rueidislock.Locker, work work) error {
	ctx, cancel, err := locker.WithContext(ctx, "billing") // with KeyMajority: 1
	if err != nil {
		return err
	}
	defer cancel()
	return work(ctx)
}

func rueidislockAfter(ctx context.Context, client *zamok.Client, work work) error {
	billing := client.Mutex("billing", &zamok.MutexConfig{Key: "rueidislock:0:billing", TTL: 5 * time.Second})
	return billing.Do(ctx, work)
}

// bridge is the version between the one with Key, or with the old library, and the
// one without.
func bridge(ctx context.Context, client *zamok.Client, work work) error {
	old := client.Mutex("billing", &zamok.MutexConfig{Key: "locks/billing"})
	return old.Do(ctx, func(ctx context.Context) error {
		return client.Mutex("billing", nil).Do(ctx, work)
	})
}

func bridgeAfter(ctx context.Context, client *zamok.Client, work work) error {
	return client.Mutex("billing", nil).Do(ctx, work)
}

func quorumBefore(ctx context.Context, pools []redsyncredis.Pool, work work) error {
	mutex := redsync.New(pools...).NewMutex("billing")
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return work(ctx)
}

// quorumBridge is bridge for a lock that cannot be shared.
func quorumBridge(ctx context.Context, pools []redsyncredis.Pool, client *zamok.Client, work work) error {
	mutex := redsync.New(pools...).NewMutex("billing")
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return client.Mutex("billing", nil).Do(ctx, work)
}
