package drivertest

import (
	"bufio"
	"bytes"
	"net"
	"strings"
	"sync"
	"time"
)

// proxyConn is one connection through the proxy. Three goroutines serve it, and
// end with it: one reads requests and notes when each may go on, one passes
// them to the server, one passes replies and pushes back.
type proxyConn struct {
	proxy  *Proxy
	client net.Conn

	mu      sync.Mutex
	changed sync.Cond  // of pending and dead
	server  net.Conn   // nil until connected
	pending []*request // sent to the server, not answered yet, oldest first
	dead    bool
	done    chan struct{} // closed with dead
	pubsub  bool          // a subscription was asked for: RESP2 pushes may arrive
}

// request is a command on its way.
type request struct {
	args    []string
	raw     []byte
	due     time.Time // when it may go on
	replies int       // how many frames answer it
	confirm bool      // they are confirmations of a subscription
	fault   *Fault
}

func newRequest(args []string, raw []byte, due time.Time) *request {
	q := &request{args: args, raw: raw, due: due, replies: 1}
	if len(args) > 0 && strings.HasSuffix(strings.ToLower(args[0]), "subscribe") {
		q.confirm = true
		q.replies = max(1, len(args)-1) // one frame for each channel
	}
	return q
}

func (c *proxyConn) run() {
	defer c.proxy.forget(c)
	defer c.kill()
	if !c.proxy.pass(c.done) {
		return
	}
	server, err := net.DialTimeout("tcp", c.proxy.upstream, ioLimit)
	if err != nil || !c.attach(server) {
		return
	}
	queue := make(chan *request, 10_000)
	var both sync.WaitGroup
	both.Go(func() { c.readRequests(queue) })
	both.Go(func() { c.forward(queue) })
	c.readReplies()
	c.kill()
	both.Wait()
}

// attach notes the server's side, unless the connection was killed meanwhile.
func (c *proxyConn) attach(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		server.Close()
		return false
	}
	c.server = server
	return true
}

// kill ends the connection on both sides. Everything that waits returns.
func (c *proxyConn) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	c.dead = true
	close(c.done)
	c.changed.Broadcast()
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}

// readRequests ends when the client closes. What it had sent still goes on.
func (c *proxyConn) readRequests(queue chan<- *request) {
	defer close(queue)
	r := bufio.NewReaderSize(c.client, 64<<10)
	for {
		args, raw, err := readRequest(r)
		if err != nil {
			return
		}
		select {
		case queue <- newRequest(args, raw, time.Now().Add(c.proxy.currentDelay())):
		case <-c.done:
			return
		}
	}
}

func (c *proxyConn) forward(queue <-chan *request) {
	for q := range queue {
		if !c.waitUntil(q.due) || !c.narrow(len(q.raw)) || !c.proxy.pass(c.done) || !c.send(q) {
			return
		}
	}
	// The client has gone and will read no reply, but the server still answers
	// what it was sent; then it closes, and readReplies ends.
	if s, ok := c.server.(*net.TCPConn); ok {
		s.CloseWrite()
	}
}

// send passes one request on, or does to it what a fault says. It returns false
// when the connection is over.
func (c *proxyConn) send(q *request) bool {
	q.fault = c.proxy.take(false, q.args)
	if q.fault != nil {
		switch q.fault.kind {
		case cutBefore:
			c.waitAnswered()
			c.kill()
			close(q.fault.fired)
			return false
		case hold:
			if !c.held(q.fault) {
				return false
			}
			q.fault = nil
		}
	}
	c.mu.Lock()
	c.pending = append(c.pending, q)
	c.pubsub = c.pubsub || q.confirm
	c.mu.Unlock()
	if _, err := c.server.Write(q.raw); err != nil {
		c.kill()
		return false
	}
	if q.fault != nil { // nothing may be executed behind it
		return c.waitAnswered()
	}
	return true
}

// held says that the fault has happened and waits for its release.
func (c *proxyConn) held(f *Fault) bool {
	close(f.fired)
	select {
	case <-f.release:
		return true
	case <-c.done:
		return false
	}
}

// narrow waits for as long as n bytes take on their way.
func (c *proxyConn) narrow(n int) bool {
	rate := c.proxy.currentRate()
	return rate == 0 || c.waitUntil(time.Now().Add(time.Duration(n)*time.Second/time.Duration(rate)))
}

func (c *proxyConn) waitUntil(due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.done:
		return false
	}
}

// waitAnswered waits until all that was sent is answered.
func (c *proxyConn) waitAnswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > 0 && !c.dead {
		c.changed.Wait()
	}
	return !c.dead
}

func (c *proxyConn) readReplies() {
	r := bufio.NewReaderSize(c.server, 64<<10)
	for {
		raw, err := readFrame(r)
		if err != nil || !c.narrow(len(raw)) || !c.proxy.pass(c.done) {
			return
		}
		if !c.deliver(raw) {
			return
		}
	}
}

// deliver passes one frame to the client. The request that it answers leaves
// pending after that, so that waitAnswered means: the client has been sent it.
func (c *proxyConn) deliver(raw []byte) bool {
	c.mu.Lock()
	fields := pushFields(raw, c.pubsub)
	answered := c.answeredBy(fields)
	c.mu.Unlock()
	switch {
	case answered != nil && answered.fault != nil:
		f := answered.fault
		switch f.kind {
		case cutInside:
			_, _ = c.client.Write(raw[:len(raw)/2])
			fallthrough
		case cutAfter:
			c.kill()
			close(f.fired)
			return false
		}
		if !c.held(f) {
			return false
		}
	case answered == nil && fields != nil:
		if f := c.proxy.take(true, fields); f != nil {
			if f.kind == dropPush {
				close(f.fired)
				return true
			}
			if !c.held(f) {
				return false
			}
		}
	}
	// A client that has gone reads nothing; the server's replies are still
	// consumed, since the requests behind them may be of interest to a test.
	c.client.Write(raw)
	if answered != nil {
		c.settle(answered)
	}
	return true
}

// answeredBy finds the request that a frame answers: the oldest one, unless
// the frame is a push that came by itself.
func (c *proxyConn) answeredBy(fields []string) *request {
	if len(c.pending) == 0 {
		return nil
	}
	q := c.pending[0]
	switch {
	case fields == nil: // an error may answer a subscription too
		if q.confirm {
			q.replies = 1
		}
		return q
	case fields[0] == "pong": // RESP2, subscribed
		return q
	case q.confirm && fields[0] == strings.ToLower(q.args[0]):
		return q
	}
	return nil
}

func (c *proxyConn) settle(q *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.replies--; q.replies == 0 {
		c.pending = c.pending[1:]
		c.changed.Broadcast()
	}
}

// pushFields returns the fields of a push, and nil for any other frame. In
// RESP2 pushes are arrays, told apart by their first field; the server sends no
// other arrays to a connection that has subscribed.
func pushFields(raw []byte, pubsub bool) []string {
	if raw[0] != '>' && (raw[0] != '*' || !pubsub) {
		return nil
	}
	v, err := parseFrame(bufio.NewReader(bytes.NewReader(raw)))
	list, ok := v.([]any)
	if err != nil || !ok || len(list) == 0 {
		return nil
	}
	fields := make([]string, len(list))
	for i, f := range list {
		fields[i], _ = f.(string)
	}
	if raw[0] == '>' {
		return fields
	}
	switch fields[0] {
	case "message", "pmessage", "smessage", "pong",
		"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return fields
	}
	return nil
}
