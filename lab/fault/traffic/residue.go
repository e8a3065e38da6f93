package traffic

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// Residue writes down all keys that are on the servers, for when all leases are over.
func Residue(ctx context.Context, to Target, log *history.Log) error {
	for i := range to.Members {
		if err := Residue(ctx, to.member(i), log); err != nil {
			return err
		}
	}
	if len(to.Members) > 0 {
		return nil
	}
	c := to.goRedis()
	defer c.Close()
	cluster, ok := c.(*redis.ClusterClient)
	if !ok {
		return residue(ctx, c, log)
	}
	var mu sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return residue(ctx, node, log)
	})
}

func residue(ctx context.Context, c redis.Cmdable, log *history.Log) error {
	all := c.Scan(ctx, 0, "*", 1000).Iterator()
	for all.Next(ctx) {
		e := history.Event{Op: history.Key, Name: all.Val(), Call: history.Now()}
		left, err := c.PTTL(ctx, e.Name).Result()
		if err != nil {
			return err
		}
		if left == -2 {
			continue // it has just ended
		}
		if e.TTL = int64(left); left == -time.Nanosecond {
			e.TTL = -1
		}
		log.End(&e)
	}
	return all.Err()
}
