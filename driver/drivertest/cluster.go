package drivertest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Cluster is a Redis Cluster of one test: servers on the loopback interface.
type Cluster struct {
	t        testing.TB
	nodes    []*Server
	promoted map[*Server]time.Time // by Failover
}

// slotCount is the number of slots of a cluster.
const slotCount = 16384

// nodeTimeout is after how many ms a silent node is taken for dead. A machine that
// is busy must not add failovers of its own.
const nodeTimeout = 2000

// Failovers skips a test in which servers take over from each other, unless
// $ZAMOK_TEST_FAILOVERS is set: how long they need to agree has no bound on a busy
// machine.
func Failovers(t testing.TB) {
	t.Helper()
	if os.Getenv("ZAMOK_TEST_FAILOVERS") == "" {
		t.Skip("servers take over from each other here, which takes as long as it takes: make test-failovers runs this")
	}
}

// StartCluster starts so many primaries, with as many replicas each, and returns
// when every one of them knows all others and has its data. A node that does not
// answer for two seconds is taken for dead. args are appended to the command line of
// each, as those of StartServer, and may set otherwise. The test's cleanup stops
// them. It works with Redis from 7.0 on and with Valkey.
func StartCluster(t testing.TB, shards, replicas int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, promoted: make(map[*Server]time.Time)}
	for len(c.nodes) < shards*(1+replicas) {
		s := StartServer(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-node-timeout", strconv.Itoa(nodeTimeout), "--cluster-announce-ip", "127.0.0.1",
			"--cluster-port", strconv.Itoa(freePort(t)), "--cluster-replica-validity-factor", "0",
			"--repl-diskless-sync-delay", "0",
		}, args...)...)
		if len(s.view()) > 1 { // another cluster, which is ending, looked for a node of its own at this port
			s.Kill()
			continue
		}
		c.nodes = append(c.nodes, s)
	}
	for i, s := range c.nodes[:shards] {
		s.MustDo("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slotCount/shards), strconv.Itoa((i+1)*slotCount/shards-1))
	}
	for i, s := range c.nodes {
		s.MustDo("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i > 0 {
			bus := strings.Split(c.nodes[0].MustDo("CONFIG", "GET", "cluster-port").([]any)[1].(string), " ")[0]
			s.MustDo("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.nodes[0].port), bus)
		}
	}
	c.agree("the nodes to know each other", func(v view) bool { return len(v) == len(c.nodes) && !v.has("handshake") })
	for i, s := range c.nodes[shards:] {
		s.MustDo("CLUSTER", "REPLICATE", c.nodes[i%shards].id())
	}
	c.agree("the nodes to agree", func(v view) bool { return v.count("slave") == shards*replicas })
	c.Settle()
	return c
}

// Addrs returns host:port of every node, those that were first the primaries first.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range c.nodes {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Nodes returns all nodes, those that were first the primaries first.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Primary returns the node that has the slot, by its own account; of two that say
// so the one with the later right. All nodes must answer or be killed.
func (c *Cluster) Primary(slot int) *Server {
	c.t.Helper()
	best := c.primary(slot)
	if best == nil {
		c.t.Fatalf("drivertest: no node has slot %d", slot)
	}
	return best
}

// primary is nil when no node says so.
func (c *Cluster) primary(slot int) (best *Server) {
	c.t.Helper()
	latest := int64(-1)
	for _, s := range c.running() {
		if me, ok := s.view().myself(); ok && slices.Contains(me.flags, "master") && me.has(slot) && me.epoch > latest {
			best, latest = s, me.epoch
		}
	}
	return best
}

// Replica returns a replica of the slot's primary.
func (c *Cluster) Replica(slot int) *Server {
	c.t.Helper()
	of := c.Primary(slot).id()
	for _, s := range c.running() {
		if me, ok := s.view().myself(); ok && me.of == of {
			return s
		}
	}
	c.t.Fatalf("drivertest: the primary of slot %d has no replica", slot)
	return nil
}

// Failover has a replica of the slot's primary take its place, in agreement with
// it, and returns when all nodes know.
func (c *Cluster) Failover(slot int) {
	c.t.Helper()
	next := c.Replica(slot)
	id := next.id()
	c.rest(next)
	defer func() { c.promoted[next] = time.Now() }()
	// Those who do not know yet that it is a replica do not vote for it.
	of := c.Primary(slot).id()
	c.agree(fmt.Sprintf("%s to be known as a replica of %s", id, of), func(v view) bool {
		return slices.ContainsFunc(v, func(n node) bool { return n.id == id && n.of == of })
	})
	c.takeOver(next, slot)
	c.Settle()
}

// CrashBehind kills the slot's primary and has a replica take its place that lacks what
// was written last, for so long. It returns both when all nodes know; the replica is to
// CatchUp when the other is back.
func (c *Cluster) CrashBehind(slot int, lacks time.Duration) (killed, next *Server) {
	c.t.Helper()
	killed, next = c.Primary(slot), c.Replica(slot)
	c.rest(next)
	defer func() { c.promoted[next] = time.Now() }()
	next.FallBehind()
	<-time.After(lacks)
	killed.Kill()
	c.takeOver(next, slot, "FORCE")
	return killed, next
}

// rest waits until a node may be elected: one that was within four times nodeTimeout
// counts those votes again, and takes over with its old epoch, which the others do not
// follow.
func (c *Cluster) rest(next *Server) {
	again := time.Until(c.promoted[next].Add(nodeTimeout * 9 / 2 * time.Millisecond))
	<-time.After(max(again, 0))
}

// takeOver has a replica take its primary's place and waits until all nodes know.
func (c *Cluster) takeOver(next *Server, slot int, how ...string) {
	c.t.Helper()
	var asked time.Time
	c.await("the failover", func(*Server) bool {
		// One that does not come about is given up by the node after 5 s, silently;
		// asked again before, it begins again.
		if time.Since(asked) > 6*time.Second {
			asked = time.Now()
			next.Do(append([]string{"CLUSTER", "FAILOVER"}, how...)...)
		}
		me, ok := next.view().myself()
		return ok && me.has(slot)
	})
	id := next.id()
	c.agree(fmt.Sprintf("%s to be known as the primary of slot %d", id, slot), func(v view) bool { return v.owner(slot) == id })
}

// MigrateSlot gives a slot with all its keys to another primary, as an operator's
// tool does, and returns when all nodes know. between, if it is not nil, is called
// when the slot is half there: new keys are made at the new primary already.
func (c *Cluster) MigrateSlot(slot int, to *Server, between func()) {
	c.t.Helper()
	from, n := c.Primary(slot), strconv.Itoa(slot)
	to.MustDo("CLUSTER", "SETSLOT", n, "IMPORTING", from.id())
	from.MustDo("CLUSTER", "SETSLOT", n, "MIGRATING", to.id())
	if between != nil {
		between()
	}
	for {
		keys := from.MustDo("CLUSTER", "GETKEYSINSLOT", n, "100").([]any)
		if len(keys) == 0 {
			break
		}
		move := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.port), "", "0", "5000", "KEYS"}
		for _, key := range keys {
			move = append(move, key.(string))
		}
		from.MustDo(move...)
	}
	id := to.id()
	for _, s := range append([]*Server{to, from}, c.running()...) {
		s.Do("CLUSTER", "SETSLOT", n, "NODE", id) // a replica refuses, and learns of it by itself
	}
	c.agree(fmt.Sprintf("%s to be known as the place of slot %d", id, slot), func(v view) bool { return v.owner(slot) == id })
}

// Settle waits until every node that runs finds the cluster whole, and every replica
// is in step with its primary.
func (c *Cluster) Settle() {
	c.t.Helper()
	c.await("the cluster to be whole", func(s *Server) bool {
		info, err := s.Do("CLUSTER", "INFO")
		text, _ := info.(string)
		link, err2 := s.Do("INFO", "replication")
		state, _ := link.(string)
		return err == nil && err2 == nil && strings.Contains(text, "cluster_state:ok") &&
			(strings.Contains(state, "role:master") || strings.Contains(state, "master_link_status:up"))
	})
}

func (c *Cluster) running() []*Server {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(s *Server) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.proc == nil
	})
}

// agree waits until every node that runs sees it so.
func (c *Cluster) agree(what string, ok func(v view) bool) {
	c.t.Helper()
	c.await(what, func(s *Server) bool { return ok(s.view()) })
}

func (c *Cluster) await(what string, ok func(s *Server) bool) {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute) // a machine may be busy
	for _, s := range c.running() {
		for !ok(s) {
			if time.Now().After(deadline) {
				for _, s := range c.running() {
					c.t.Logf("%s says\n%v", s.Addr(), s.MustDo("CLUSTER", "NODES"))
				}
				c.t.Fatalf("drivertest: waited for %s in vain, at %s", what, s.Addr())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (s *Server) id() string {
	s.t.Helper()
	id, _ := s.MustDo("CLUSTER", "MYID").(string)
	return id
}

// view is the cluster as one node sees it.
type view []node

type node struct {
	id    string
	flags []string
	of    string // its primary's id, "-" for none
	epoch int64
	slots [][2]int
}

// view reads CLUSTER NODES; it is empty when the node does not answer.
func (s *Server) view() view {
	v, _ := s.Do("CLUSTER", "NODES")
	text, _ := v.(string)
	var all view
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		n := node{id: f[0], flags: strings.Split(f[2], ","), of: f[3]}
		n.epoch, _ = strconv.ParseInt(f[6], 10, 64)
		for _, r := range f[8:] {
			var first, last int
			switch k, _ := fmt.Sscanf(r, "%d-%d", &first, &last); k { // "[…" is a slot on its way
			case 1:
				n.slots = append(n.slots, [2]int{first, first})
			case 2:
				n.slots = append(n.slots, [2]int{first, last})
			}
		}
		all = append(all, n)
	}
	return all
}

func (n node) has(slot int) bool {
	return slices.ContainsFunc(n.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

func (v view) count(flag string) (n int) {
	for _, node := range v {
		if slices.Contains(node.flags, flag) {
			n++
		}
	}
	return n
}

func (v view) has(flag string) bool { return v.count(flag) > 0 }

func (v view) myself() (node, bool) {
	i := slices.IndexFunc(v, func(n node) bool { return slices.Contains(n.flags, "myself") })
	if i < 0 {
		return node{}, false
	}
	return v[i], true
}

func (v view) owner(slot int) string {
	i := slices.IndexFunc(v, func(n node) bool { return n.has(slot) })
	if i < 0 {
		return ""
	}
	return v[i].id
}
