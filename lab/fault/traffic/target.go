package traffic

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

// Target is where the servers are: one of Addr, Sentinels, Nodes and Members.
type Target struct {
	Addr      string   // of one server
	Sentinels []string // that know the primary as drivertest.SentinelName
	Nodes     []string // of a cluster
	Members   []string // of a quorum, each named by its place: Member
	// Ways is where to connect to instead of an address, through a proxy say.
	Ways map[string]string
}

// connect is what both libraries do by themselves, but for Ways.
func (to Target) connect(ctx context.Context, d *net.Dialer, addr string) (net.Conn, error) {
	if way, ok := to.Ways[addr]; ok {
		addr = way
	}
	return d.DialContext(ctx, "tcp", addr)
}

// member is the target of one member of a quorum.
func (to Target) member(i int) Target { return Target{Addr: to.Members[i], Ways: to.Ways} }

// goRedis makes a client with default options.
func (to Target) goRedis() redis.UniversalClient {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		return to.connect(ctx, &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}, addr)
	}
	switch {
	case to.Nodes != nil:
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: to.Nodes, Dialer: dial})
	case to.Sentinels != nil:
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: drivertest.SentinelName, SentinelAddrs: to.Sentinels, Dialer: dial})
	default:
		return redis.NewClient(&redis.Options{Addr: to.Addr, Dialer: dial})
	}
}

// rueidis makes a client with default options, but that it may connect when the server
// is back: it connects while it is made.
func (to Target) rueidis(ctx context.Context) (rueidis.Client, error) {
	opt := rueidis.ClientOption{InitAddress: to.Nodes}
	switch {
	case to.Sentinels != nil:
		opt.InitAddress, opt.Sentinel.MasterSet = to.Sentinels, drivertest.SentinelName
	case to.Addr != "":
		opt.InitAddress, opt.ForceSingleClient = []string{to.Addr}, true
	}
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return to.connect(ctx, d, addr)
	}
	for {
		c, err := rueidis.NewClient(opt)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// open makes a driver on a client of a library, and says how to close the client.
func (to Target) open(ctx context.Context, library int) (driver.Driver, func(), error) {
	if library%2 == 0 {
		c := to.goRedis()
		return zamokgoredis.New(c), func() { _ = c.Close() }, nil
	}
	c, err := to.rueidis(ctx)
	if err != nil {
		return nil, nil, err
	}
	return zamokrueidis.New(c), c.Close, nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
