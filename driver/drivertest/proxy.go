package drivertest

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and a server and understands what passes, so
// that it can break a connection at an exact point: after the server executed a
// command and before the reply is seen, for example, which no proxy of bytes can
// do. What no fault was asked for passes unchanged, byte for byte, pushes of
// RESP2 and RESP3 included. MONITOR and CLIENT REPLY OFF are not understood.
type Proxy struct {
	t        testing.TB
	addr     string
	upstream string
	closed   chan struct{}
	running  sync.WaitGroup // one accept loop at a time, three goroutines a connection

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	conns    map[*proxyConn]struct{}
	accepted int
	delay    time.Duration
	rate     int           // bytes a second of each connection and direction; 0: as they come
	open     chan struct{} // closed unless the proxy is a black hole
	rules    []*Fault      // armed, in the order in which they were set
}

// StartProxy starts a proxy before the server at addr (host:port). The test's
// cleanup stops it.
func StartProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("drivertest: %v", err)
	}
	p := &Proxy{
		t: t, addr: l.Addr().String(), upstream: addr, listener: l,
		closed: make(chan struct{}), open: make(chan struct{}), conns: map[*proxyConn]struct{}{},
	}
	close(p.open)
	p.running.Go(func() { p.accept(l) })
	t.Cleanup(p.close)
	return p
}

// Addr returns the host:port at which the proxy listens.
func (p *Proxy) Addr() string { return p.addr }

// URL returns redis://host:port.
func (p *Proxy) URL() string { return "redis://" + p.addr }

// Match chooses commands by their arguments, the name first, as they were
// sent; or pushes by their fields, as in "message", channel, payload. It must
// not call the proxy.
type Match func(args []string) bool

// Command matches commands of these names, in any case of letters. Without a
// name it matches every command.
func Command(names ...string) Match {
	return func(args []string) bool {
		return len(args) > 0 && (len(names) == 0 ||
			slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, args[0]) }))
	}
}

// Containing matches commands of that name of which one argument equals arg,
// such as a key.
func Containing(name, arg string) Match {
	return func(args []string) bool {
		return len(args) > 0 && strings.EqualFold(name, args[0]) && slices.Contains(args[1:], arg)
	}
}

// Delay keeps every command back for d before it is passed on, as a longer way
// would: pipelined commands wait together. It holds for commands that arrive
// from now on; 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Narrow passes at most so many bytes a second on, of each connection and in each
// direction; a command or a reply goes on when its last byte could have come. 0
// ends it.
func (p *Proxy) Narrow(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = bytesPerSecond
}

// Blackhole stops passing anything on, in both directions, without closing a
// connection. New connections are accepted and are silent.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default: // it is one already
	}
}

// Resume ends Blackhole. What was sent meanwhile is passed on now, as TCP would
// send it again.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// Refuse makes the port refuse new connections; those that exist live on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Accept ends Refuse.
func (p *Proxy) Accept() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatalf("drivertest: the proxy's port was taken meanwhile: %v", err)
	}
	p.listener = l
	p.running.Go(func() { p.accept(l) })
}

// KillAll closes all connections, whatever is in flight on them.
func (p *Proxy) KillAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.kill()
	}
}

// Conns returns how many connections are open now.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Accepted returns how many connections were ever opened.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // closed by Refuse or close
		}
		c := &proxyConn{proxy: p, client: client, done: make(chan struct{})}
		c.changed.L = &c.mu
		p.mu.Lock()
		p.accepted++
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		select {
		case <-p.closed: // after this a KillAll may have missed c
			c.kill()
		default:
		}
		p.running.Go(c.run)
	}
}

func (p *Proxy) close() {
	p.Refuse()
	close(p.closed)
	p.KillAll()
	p.running.Wait()
}

// pass waits while the proxy is a black hole. It returns false when the
// connection is to end instead.
func (p *Proxy) pass(done <-chan struct{}) bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-done:
	case <-p.closed:
	}
	return false
}

func (p *Proxy) currentDelay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

func (p *Proxy) currentRate() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate
}

func (p *Proxy) forget(c *proxyConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
