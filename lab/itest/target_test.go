package itest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

// target is what a client needs to find its servers: one of URL, Sentinels and Nodes.
type target struct {
	URL       string
	Sentinels []string
	Nodes     []string          // of a cluster
	Ways      map[string]string // where to connect to instead of an address
}

// String is the target as a child is told of it.
func (to target) String() string {
	text, err := json.Marshal(to)
	if err != nil {
		panic(err) // it holds only strings
	}
	return string(text)
}

// connect is what both libraries do by themselves, but for Ways.
func (to target) connect(ctx context.Context, d *net.Dialer, addr string) (net.Conn, error) {
	if way, ok := to.Ways[addr]; ok {
		addr = way
	}
	return d.DialContext(ctx, "tcp", addr)
}

// library makes drivers on clients of a library, with their default options.
type library struct {
	name string
	open func(to target) (d driver.Driver, shut func(), err error)
}

var libraries = []library{{"goredis", openGoRedis}, {"rueidis", openRueidis}}

func openGoRedis(to target) (driver.Driver, func(), error) {
	var dial func(ctx context.Context, network, addr string) (net.Conn, error)
	if to.Ways != nil {
		dial = func(ctx context.Context, _, addr string) (net.Conn, error) {
			return to.connect(ctx, &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}, addr)
		}
	}
	var c redis.UniversalClient
	switch {
	case to.Nodes != nil:
		c = redis.NewClusterClient(&redis.ClusterOptions{Addrs: to.Nodes, Dialer: dial})
	case to.Sentinels != nil:
		c = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: drivertest.SentinelName, SentinelAddrs: to.Sentinels, Dialer: dial})
	default:
		opt, err := redis.ParseURL(to.URL)
		if err != nil {
			return nil, nil, err
		}
		opt.Dialer = dial
		c = redis.NewClient(opt)
	}
	return zamokgoredis.New(c), func() { _ = c.Close() }, nil
}

func openRueidis(to target) (driver.Driver, func(), error) {
	opt := rueidis.ClientOption{InitAddress: to.Nodes}
	switch {
	case to.Sentinels != nil:
		opt.InitAddress, opt.Sentinel.MasterSet = to.Sentinels, drivertest.SentinelName
	case to.URL != "":
		var err error
		if opt, err = rueidis.ParseURL(to.URL); err != nil {
			return nil, nil, err
		}
	}
	if to.Ways != nil {
		opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return to.connect(ctx, d, addr)
		}
	}
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, nil, err
	}
	return zamokrueidis.New(c), c.Close, nil
}

// at makes a driver whose client the test's cleanup closes.
func (lib library) at(t testing.TB, to target) driver.Driver {
	t.Helper()
	d, shut, err := lib.open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	return d
}

// new is at for one server.
func (lib library) new(t testing.TB, url string) driver.Driver {
	t.Helper()
	return lib.at(t, target{URL: url})
}

// cluster is at for a cluster whose nodes are at addrs.
func (lib library) cluster(t testing.TB, addrs []string) driver.Driver {
	t.Helper()
	return lib.at(t, target{Nodes: addrs})
}
