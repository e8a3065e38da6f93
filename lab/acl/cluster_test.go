package acl

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/inspect/doctor"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

// inCluster is what the client libraries need beside it, to find their way.
var inCluster = []string{"+cluster|slots", "+cluster|shards"}

// handOver has one client wait for another, and says whether a message told it of its
// turn.
func handOver(t *testing.T, d driver.Driver) (told bool, err error) {
	t.Helper()
	stands := make(chan struct{}, 8)
	client := func() *zamok.Client {
		c, err := zamok.New(d, &zamok.Config{TTL: time.Second, GiveUp: 2 * time.Second, Logger: slog.New(slog.DiscardHandler), Trace: &zamok.Trace{
			Waiting:  func(zamok.WaitingInfo) { stands <- struct{}{} },
			Acquired: func(i zamok.AcquiredInfo) { told = told || i.HandedOver },
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ctx := context.Background()
	first, err := client().Mutex("job", nil).TryLock(ctx)
	if err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() {
		second, err := client().Mutex("job", nil).Lock(ctx)
		if err == nil {
			err = second.Release(ctx)
		}
		done <- err
	}()
	select {
	case <-stands:
	case err := <-done:
		return false, errors.Join(err, first.Release(ctx))
	}
	err = first.Release(ctx)
	return told, errors.Join(err, <-done)
}

// The rights that a cluster needs beside the others suffice, and without any of them
// waiting works by asking, or is refused with an error.
func TestRightsInCluster(t *testing.T) {
	cluster := drivertest.StartCluster(t, 3, 0)
	set := func(rules ...string) {
		t.Helper()
		for _, s := range cluster.Nodes() {
			s.MustDo(append([]string{"ACL", "SETUSER", "app", "reset"}, rules...)...)
		}
	}
	all := slices.Concat(granted(), doctor.RightsInCluster(), inCluster)
	for _, lib := range []dial{
		{"go-redis", func(t *testing.T, _ string) driver.Driver {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Username: "app", Password: password})
			t.Cleanup(func() { _ = c.Close() })
			return zamokgoredis.New(c)
		}},
		{"rueidis", func(t *testing.T, _ string) driver.Driver {
			c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs(), Username: "app", Password: password, DisableCache: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return zamokrueidis.New(c)
		}},
	} {
		t.Run(lib.name, func(t *testing.T) {
			set(all...)
			if told, err := handOver(t, lib.open(t, "")); err != nil || !told {
				t.Errorf("with all rights: told: %v, %v", told, err)
			}
			for _, rule := range []string{"+ssubscribe", "+spublish", "+pubsub|shardnumsub"} {
				set(slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == rule })...)
				told, err := handOver(t, lib.open(t, ""))
				if told && err == nil {
					t.Errorf("without %s nothing changes", rule)
				}
				t.Logf("without %s: told: %v, %v", rule, told, err)
			}
		})
	}
}
