package readme

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// report is what a reader of the README would write around its code.
func report(ctx context.Context, rdb *redis.Client, makeReport func(ctx context.Context, fence int64) error) error {
	client, err := zamok.New(zamokgoredis.New(rdb), nil) // rdb is your go-redis client and stays yours
	if err != nil {
		return err
	}
	defer client.Close()

	return client.Mutex("report", nil).Do(ctx, func(ctx context.Context) error {
		// ctx ends when the lease does: pass it on, and stop when it ends.
		return makeReport(ctx, zamok.LeaseFrom(ctx).Fence())
	})
}

func TestReadme(t *testing.T) {
	server := drivertest.StartServer(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	var last int64
	for range 2 {
		err := report(t.Context(), rdb, func(ctx context.Context, fence int64) error {
			if server.MustDo("EXISTS", "lock:report") != int64(1) {
				t.Error("the lock is not on the server while the function runs")
			}
			if fence <= last {
				t.Errorf("fence %d after %d", fence, last)
			}
			last = fence
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		if server.MustDo("EXISTS", "lock:report") != int64(0) {
			t.Error("the lock is on the server after the release")
		}
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client that was handed in is of no use any more: %v", err)
	}
}
