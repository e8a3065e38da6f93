package deploy

import (
	"errors"
	"net"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/skew"
)

// Deployment is the servers of one run, and the ways of its workers to them.
type Deployment struct {
	*Kind
	Host    *Host
	Servers []*drivertest.Server

	// Ways are the proxies, by worker and server. There are none in Spaces.
	Ways [][]*drivertest.Proxy
	// Spaces are where the workers live, each alone; nil: with everybody else.
	Spaces []*Space

	Sentinel *drivertest.Sentinel // nil: none
	Cluster  *drivertest.Cluster  // nil: none
	Clock    *skew.Clock          // of the last server; nil: the host's
}

// ErrNotHere wraps the reason why this machine cannot have such a deployment.
var ErrNotHere = errors.New("not on this machine")

// Start starts the servers of a kind, for so many workers. The host's Close ends
// them.
func Start(h *Host, kind *Kind, workers int) (*Deployment, error) {
	d := &Deployment{Kind: kind, Host: h}
	if kind.Name == "spaces" {
		if err := canSpace(); err != nil {
			return nil, errors.Join(ErrNotHere, err)
		}
	}
	err := h.Try(func() {
		kind.start(d, workers)
		if d.Spaces == nil {
			d.layWays(workers)
		}
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Deployment) layWays(workers int) {
	for range workers {
		var ways []*drivertest.Proxy
		for _, s := range d.Servers {
			ways = append(ways, drivertest.StartProxy(d.Host, s.Addr()))
		}
		d.Ways = append(d.Ways, ways)
	}
}

// Addrs are where a worker's clients look: see Mode.
func (d *Deployment) Addrs(worker int) []string {
	switch {
	case d.Sentinel != nil:
		return d.Sentinel.Addrs()
	case d.Spaces != nil:
		_, port, _ := net.SplitHostPort(d.Servers[0].Addr())
		return []string{net.JoinHostPort(d.Spaces[worker].host, port)}
	}
	var addrs []string
	for _, s := range d.Servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Detours are where a worker's clients connect to instead of a server's address.
func (d *Deployment) Detours(worker int) map[string]string {
	detours := make(map[string]string)
	if d.Spaces == nil {
		for i, s := range d.Servers {
			detours[s.Addr()] = d.Ways[worker][i].Addr()
		}
	}
	return detours
}

// Settle waits until all servers are in step again. All faults must be over.
func (d *Deployment) Settle() error {
	return d.Host.Try(func() {
		switch {
		case d.Sentinel != nil:
			d.Sentinel.Primary()
			d.Sentinel.AwaitReplicas(len(d.Servers) - 1)
		case d.Cluster != nil:
			d.Cluster.Settle()
		}
	})
}

// Rest is how long after the last fault a new one may be set where a member that
// lost its data takes no part for a while.
func (d *Deployment) Rest() time.Duration { return d.Quarantine }

// Version is what the servers are, and of which version.
func (d *Deployment) Version() string {
	reply, _ := d.Servers[0].Do("INFO", "server")
	info, _ := reply.(string)
	for _, name := range []string{"Valkey", "Redis"} { // Valkey also says which Redis it is like
		if _, rest, ok := strings.Cut(info, "\n"+strings.ToLower(name)+"_version:"); ok {
			version, _, _ := strings.Cut(rest, "\r")
			return name + " " + version
		}
	}
	return "unknown"
}
