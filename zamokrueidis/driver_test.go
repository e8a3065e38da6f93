package zamokrueidis

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// newDriver makes a driver as a user would, on default options, but one that
// asks for a sign of life often.
func newDriver(t testing.TB, url string) driver.Driver {
	opt, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return driverOf(t, opt)
}

func driverOf(t testing.TB, opt rueidis.ClientOption) driver.Driver {
	t.Helper()
	c, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	d := New(c).(*ruei)
	d.keeper.PingEvery = 300 * time.Millisecond
	return d
}

func TestCluster(t *testing.T) {
	drivertest.RunCluster(t, func(t testing.TB, addrs []string) driver.Driver {
		return driverOf(t, rueidis.ClientOption{InitAddress: addrs})
	})
}

func TestDriver(t *testing.T) { drivertest.Run(t, newDriver) }

// Some servers and proxies speak only RESP2. rueidis then keeps subscriptions on
// yet another connection, beside the dedicated one.
func TestDriverRESP2(t *testing.T) {
	drivertest.Run(t, func(t testing.TB, url string) driver.Driver {
		opt, err := rueidis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		opt.AlwaysRESP2, opt.DisableCache = true, true
		return driverOf(t, opt)
	})
}
