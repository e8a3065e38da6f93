package zamokgoredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// newDriver makes a driver as a user would, on default options, but one that
// asks for a sign of life often.
func newDriver(t testing.TB, url string) driver.Driver {
	d := New(newClient(t, url)).(*goredis)
	d.keeper.PingEvery = 300 * time.Millisecond
	return d
}

func newClient(t testing.TB, url string) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opt)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCluster(t *testing.T) {
	drivertest.RunCluster(t, func(t testing.TB, addrs []string) driver.Driver {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		t.Cleanup(func() { c.Close() })
		d := New(c).(*goredis)
		d.keeper.PingEvery = 300 * time.Millisecond
		return d
	})
}

func TestDriver(t *testing.T) { drivertest.Run(t, newDriver) }
