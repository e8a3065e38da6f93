package itest

import (
	"slices"
	"testing"
	"time"

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
	target target
	nodes  []server                // all that may have a key
	at     func(key string) server // who has the key now
	libs   []library               // of the clients, in turn
	short  bool                    // a case that is tried for long on one server need not be here
}

// Nobody takes over in the settings, however long a case stops a server.
var settings = []setting{
	{"standalone", func(t testing.TB) place {
		s := startServer(t)
		return placeAt(target{URL: s.URL()}, s)
	}},
	{"sentinel", func(t testing.TB) place {
		d := drivertest.StartSentinel(t, 1, 1)
		d.Patience(time.Minute)
		return placeAt(target{Sentinels: d.Addrs()}, server{d.Primary()})
	}},
	{"cluster", func(t testing.TB) place {
		return placeOf(drivertest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000"))
	}},
}

func placeAt(to target, s server) place {
	return place{target: to, nodes: []server{s}, at: func(string) server { return s }, libs: libraries}
}

func placeOf(c *drivertest.Cluster) place {
	p := place{target: target{Nodes: c.Addrs()}, libs: libraries}
	for _, s := range c.Nodes() {
		p.nodes = append(p.nodes, server{s})
	}
	p.at = func(key string) server { return server{c.Primary(keys.Slot(key))} }
	return p
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

// everywhere runs a case on one server as eachKind does, all clients of a run on one
// library, and for a mutex in every other setting, with the libraries in turn.
func everywhere(t *testing.T, run func(t *testing.T, p place, k leaseKind)) {
	t.Parallel()
	t.Run(settings[0].name, func(t *testing.T) {
		eachKind(t, func(t *testing.T, lib library, k leaseKind) { run(t, alone(t, lib), k) })
	})
	elsewhere(t, func(t *testing.T, p place) { run(t, p, mutexKind) })
}

// eachAndElsewhere runs a case that is not of one kind: on one server with every library,
// and in every other setting, with the libraries in turn.
func eachAndElsewhere(t *testing.T, run func(t *testing.T, p place)) {
	each(t, func(t *testing.T, lib library) { run(t, alone(t, lib)) })
	elsewhere(t, run)
}

// alone is one server for clients of one library.
func alone(t *testing.T, lib library) place {
	p := settings[0].start(t)
	p.libs = []library{lib}
	return p
}

// elsewhere runs a case in every setting but the first, with the libraries in turn.
func elsewhere(t *testing.T, run func(t *testing.T, p place)) {
	for i, d := range settings[1:] {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p, first := d.start(t), (i+1+len(t.Name()))%len(libraries)
			p.libs, p.short = slices.Concat(libraries[first:], libraries[:first]), true
			run(t, p)
		})
	}
}

func (p place) lib(turn int) library { return p.libs[turn%len(p.libs)] }

// open makes a driver for these servers.
func (p place) open(t testing.TB, lib library) driver.Driver {
	t.Helper()
	return lib.at(t, p.target)
}

// client makes a client, as another process, on the library whose turn it is.
func (p place) client(t testing.TB, turn int, cfg *zamok.Config) *zamok.Client {
	t.Helper()
	return clientOn(t, p.open(t, p.lib(turn)), cfg)
}

// start starts a child, see children_test.go.
func (p place) start(t *testing.T, turn int, role string, env ...string) *process {
	t.Helper()
	return start(t, p.lib(turn), p.target.URL, role, append(env, targetEnv+"="+p.target.String())...)
}

// clients returns what makes a client on the library whose turn it is then.
func (p place) clients(t testing.TB) func() *zamok.Client {
	turn := 0
	return func() *zamok.Client {
		t.Helper()
		turn++
		return p.client(t, turn, nil)
	}
}

// writer is who has the lock alone: of an RWMutex, and elsewhere a Mutex.
func (p place) writer(c *zamok.Client, name string) taker {
	if p.short {
		return c.Mutex(name, nil)
	}
	return c.RWMutex(name, nil)
}

// mustBeGone fails the test when any of the kind's keys are left.
func (p place) mustBeGone(t testing.TB, k leaseKind) {
	t.Helper()
	for _, s := range p.nodes {
		k.mustBeGone(t, s)
	}
}

// waiting says how many stand in the queue of a lock.
func (p place) waiting(t testing.TB, name string) int {
	t.Helper()
	return p.at(queue(name)).waiting(t, name)
}

// ways are proxies, one before each server and each Sentinel. Clients that are opened
// here come by them alone.
type ways struct {
	place
	proxies map[string]*drivertest.Proxy // by what they stand before
}

func (p place) ways(t testing.TB) ways {
	t.Helper()
	w := ways{p, map[string]*drivertest.Proxy{}}
	w.target.Ways = map[string]string{}
	before := p.target.Sentinels
	for _, s := range p.nodes {
		before = append(before[:len(before):len(before)], s.Addr())
	}
	for _, addr := range before {
		w.proxies[addr] = drivertest.StartProxy(t, addr)
		w.target.Ways[addr] = w.proxies[addr].Addr()
	}
	return w
}

// to is the way to the server that has the key.
func (w ways) to(key string) *drivertest.Proxy { return w.proxies[w.at(key).Addr()] }

// all does the same to all of them.
func (w ways) all(do func(p *drivertest.Proxy)) {
	for _, p := range w.proxies {
		do(p)
	}
}
