package zamokgoredis

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// cutting is a connection that is cut when the server has answered the first pipeline of
// several scripts; replies to single scripts come 20 ms late while it is armed.
type cutting struct {
	net.Conn
	n     atomic.Int64
	armed *atomic.Bool
	cut   func()
}

func (c *cutting) Write(b []byte) (int, error) {
	c.n.Store(int64(bytes.Count(bytes.ToLower(b), []byte("evalsha"))))
	return c.Conn.Write(b)
}

func (c *cutting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case c.n.Load() > 1 && c.armed.CompareAndSwap(true, false):
		c.Conn.Close()
		c.cut()
		return 0, syscall.ECONNRESET
	case c.n.Load() == 1 && c.armed.Load():
		<-time.After(20 * time.Millisecond)
	}
	return n, err
}

// Callers leave at the moment at which the replies of their pipeline are lost, and give
// back what it brought before go-redis sends it again.
func TestAPipelineThatIsSentAgain(t *testing.T) {
	s := drivertest.StartServer(t)
	opt, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	var armed atomic.Bool
	var cut func()
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutting{Conn: conn, armed: &armed, cut: func() { cut() }}, nil
	}
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	c, err := zamok.New(New(rdb), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var warm sync.WaitGroup
	for i := range 20 { // connections, and the scripts
		warm.Go(func() {
			if l, err := c.Mutex(fmt.Sprint("warm", i), nil).TryLock(t.Context()); err == nil {
				_ = l.Release(t.Context())
			}
		})
	}
	warm.Wait()
	for round := range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		cut = cancel
		armed.Store(true)
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				l, err := c.Mutex(fmt.Sprintf("job%d-%d", round, i), nil).TryLock(ctx)
				if err == nil {
					_ = l.Release(context.Background())
				}
			})
		}
		all.Wait()
		cancel()
		armed.Store(false)
	}
	for round := range 10 {
		for i := range 12 {
			key := fmt.Sprintf("lock:job%d-%d", round, i)
			for began := time.Now(); rdb.Exists(t.Context(), key).Val() > 0; {
				if time.Since(began) > 4*time.Second { // less than the TTL
					t.Fatalf("%s is held by nobody", key)
				}
				<-time.After(20 * time.Millisecond)
			}
		}
	}
}
