package itest

import (
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
)

// setting is one way to run servers.
type setting struct {
	name  string
	start func(t testing.TB) place
}

// place is the servers of one test.
type place struct {
	open func(t testing.TB, lib library) driver.Driver
	at   func(key string) server // who has the key now
}

var settings = []setting{
	{"standalone", func(t testing.TB) place {
		s := startServer(t)
		return place{
			open: func(t testing.TB, lib library) driver.Driver { return lib.new(t, s.URL()) },
			at:   func(string) server { return s },
		}
	}},
	{"sentinel", func(t testing.TB) place {
		s := sentinel{drivertest.StartSentinel(t, 1, 1)}
		return place{open: s.open, at: func(string) server { return s.primary() }}
	}},
	{"cluster", func(t testing.TB) place { return placeOf(drivertest.StartCluster(t, 3, 1)) }},
}

func placeOf(c *drivertest.Cluster) place {
	return place{
		open: func(t testing.TB, lib library) driver.Driver { return lib.cluster(t, c.Addrs()) },
		at:   func(key string) server { return server{c.Primary(keys.Slot(key))} },
	}
}

// eachSetting runs a case in every setting, with the libraries in turn: a case
// with more than one client has all of them.
func eachSetting(t *testing.T, run func(t *testing.T, p place)) {
	t.Parallel()
	for _, d := range settings {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			run(t, d.start(t))
		})
	}
}

// client makes a client, as another process, on the library whose turn it is.
func (p place) client(t testing.TB, turn int, cfg *zamok.Config) *zamok.Client {
	t.Helper()
	return clientOn(t, p.open(t, libraries[turn%len(libraries)]), cfg)
}

// waiting says how many stand in the queue of a lock.
func (p place) waiting(t testing.TB, name string) int {
	t.Helper()
	return p.at(queue(name)).waiting(t, name)
}
