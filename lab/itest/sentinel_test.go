package itest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

// deployment is a primary with a replica, and a Sentinel that watches them.
type deployment struct {
	servers  [2]server
	sentinel string // its address
	asks     *redis.SentinelClient
}

func startDeployment(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{}
	d.servers[0] = startServer(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(d.servers[0].Addr())
	d.servers[1] = startServer(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
	within(t, patience, "the replica is in step", func() bool {
		info, _ := d.servers[1].MustDo("INFO", "replication").(string)
		return strings.Contains(info, "master_link_status:up")
	})
	d.startSentinel(t, host, port)
	return d
}

// startSentinel needs no package of its own: redis-server is one, when told so.
func (d *deployment) startSentinel(t *testing.T, host, port string) {
	t.Helper()
	binary := os.Getenv("ZAMOK_TEST_REDIS_SERVER")
	if binary == "" {
		binary = "redis-server"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.sentinel = l.Addr().String()
	_ = l.Close()
	_, own, _ := net.SplitHostPort(d.sentinel)
	dir := t.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 5000\nsentinel failover-timeout main 20000\n", own, dir, host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command(binary, conf, "--sentinel"))
	d.asks = redis.NewSentinelClient(&redis.Options{Addr: d.sentinel})
	t.Cleanup(func() { _ = d.asks.Close() })
	within(t, patience, "Sentinel knows the replica", func() bool {
		replicas, err := d.asks.Replicas(t.Context(), "main").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
}

// primary returns the server that says it is one now.
func (d *deployment) primary(t *testing.T) server {
	t.Helper()
	for _, s := range d.servers {
		if role(s) == "master" {
			return s
		}
	}
	t.Fatal("no server is a primary")
	panic("not reached")
}

// role is empty when the server cannot be asked: a failover cuts connections.
func role(s server) string {
	v, _ := s.Do("ROLE")
	list, _ := v.([]any)
	if len(list) == 0 {
		return ""
	}
	text, _ := list[0].(string)
	return text
}

func (d *deployment) open(t *testing.T, lib library) driver.Driver {
	t.Helper()
	if lib.name == "goredis" {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{d.sentinel}})
		t.Cleanup(func() { _ = c.Close() })
		return zamokgoredis.New(c)
	}
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{d.sentinel}, Sentinel: rueidis.SentinelOption{MasterSet: "main"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return zamokrueidis.New(c)
}

// An operator moves the primary while a lock is held and another waits for it.
// The holder keeps its lease or is told; the waiter gets the lock after it; the
// fence grows.
func TestSentinelPlannedFailover(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		d := startDeployment(t)
		cfg := &zamok.Config{TTL: 9 * time.Second}
		a, b := clientOn(t, d.open(t, lib), cfg), clientOn(t, d.open(t, lib), cfg)
		var h history
		l := lock(t, a.Mutex("job", nil))
		end := h.held("holder", l)
		result := goLock(t.Context(), b.Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return d.servers[0].waiting(t, "job") == 1 })
		within(t, patience, "the replica knows", func() bool { return d.servers[1].waiting(t, "job") == 1 })

		if err := d.asks.Failover(t.Context(), "main").Err(); err != nil {
			t.Fatal(err)
		}
		within(t, patience, "the replica is the primary", func() bool {
			return role(d.servers[1]) == "master"
		})
		within(t, patience, "the old primary follows", func() bool {
			return role(d.servers[0]) == "slave"
		})

		var err error
		within(t, patience, "the holder has an answer", func() bool {
			err = l.Check(t.Context())
			return !errors.Is(err, zamok.ErrUnavailable)
		})
		if err != nil && !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Check: %v", err)
		}
		t.Logf("the holder: %v", err)
		end()
		releaseErr := l.Release(context.Background())
		if (err == nil) != (releaseErr == nil) {
			t.Errorf("Check says %v, Release %v", err, releaseErr)
		}
		start := time.Now()
		g := receive(t, result, "lock")
		if g.err != nil {
			t.Fatalf("the waiter: %v", g.err)
		}
		t.Logf("the waiter has it %v after the release", g.at.Sub(start))
		if v := d.primary(t).get(t, "lock:job"); v != value(g.lease) {
			t.Errorf("the key holds %q, the lease is %q", v, value(g.lease))
		}
		h.held("waiter", g.lease)()
		h.check(t)
		release(t, g.lease)

		// And as before on the new primary: woken by a push, not by a look.
		l = lock(t, a.Mutex("job", nil))
		result = goLock(t.Context(), b.Mutex("job", nil))
		within(t, patience, "it waits", func() bool { return d.servers[1].waiting(t, "job") == 1 })
		start = time.Now()
		release(t, l)
		if g = receive(t, result, "lock"); g.err != nil || slow(start, g.at, 100*time.Millisecond) {
			t.Errorf("handed over after %v: %v", g.at.Sub(start), g.err)
		}
	})
}
