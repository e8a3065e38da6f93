package drivertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// SentinelName is the name by which the Sentinels of StartSentinel know the primary.
const SentinelName = "main"

// sentinelDownAfter is after what time Sentinels take a server for dead.
const sentinelDownAfter = time.Second

// sentinelTilt is for how long a Sentinel that was held up for two seconds does nothing,
// since it does not trust its clock. By default it is 30 s, and a machine that is busy
// would add them to a test.
const sentinelTilt = 3 * time.Second

// sentinelTimeout is how long a failover may take for Sentinel.
const sentinelTimeout = 10 * time.Second

// Sentinel is a primary, its replicas, and the Sentinels that watch them. Which server
// is the primary changes with every failover.
type Sentinel struct {
	t testing.TB

	servers   []*Server
	sentinels []*watcher
}

// watcher is one process of Sentinel.
type watcher struct {
	port int
	proc *process
}

func (w *watcher) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)) }

// StartSentinel starts a primary with so many replicas, and so many Sentinels of which
// the larger half decides. It returns when all know each other and the replicas are in
// step. A server that does not answer for a second is replaced, which takes some
// seconds. args are given to all servers, for example "--min-replicas-to-write", "1".
//
// The binary is that of StartServer, which is a Sentinel too when told so.
func StartSentinel(t testing.TB, sentinels, replicas int, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{t: t}
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	primary := StartServer(t, args...)
	s.servers = append(s.servers, primary)
	for range replicas {
		s.servers = append(s.servers, StartServer(t, append(args, "--replicaof", "127.0.0.1 "+strconv.Itoa(primary.port))...))
	}
	s.AwaitReplicas(replicas)
	for range sentinels {
		s.startWatcher(primary.port, sentinels/2+1)
	}
	s.awaitAcquainted(sentinels, replicas)
	return s
}

// startWatcher starts a Sentinel. It keeps its state in its file of configuration.
func (s *Sentinel) startWatcher(primary, quorum int) {
	s.t.Helper()
	path := binary(s.t)
	var err error
	for range 10 { // the port may be taken between the look and the start
		w := &watcher{port: freePort(s.t)}
		dir := s.t.TempDir()
		conf := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %d %d\n"+
			"sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s %d\nsentinel parallel-syncs %s 5\n",
			w.port, dir, SentinelName, primary, quorum, SentinelName, sentinelDownAfter.Milliseconds(), SentinelName, sentinelTimeout.Milliseconds(), SentinelName)
		if err = os.WriteFile(conf, []byte(text), 0o600); err != nil {
			break
		}
		if w.proc, err = run(path, []string{conf, "--sentinel"}); err != nil {
			break
		}
		s.t.Cleanup(w.proc.kill)
		// Its PING is answered like any server's.
		if err = (&Server{t: s.t, port: w.port}).awaitAnswer(w.proc); err == nil {
			s.sentinels = append(s.sentinels, w)
			_, _ = s.ask(w, "SENTINEL", "DEBUG", "tilt-period", strconv.FormatInt(sentinelTilt.Milliseconds(), 10)) // not before Redis 7
			return
		}
	}
	s.t.Fatalf("drivertest: cannot start a Sentinel: %v", err)
}

// Addrs returns the host:port of every Sentinel.
func (s *Sentinel) Addrs() []string {
	var addrs []string
	for _, w := range s.sentinels {
		addrs = append(addrs, w.addr())
	}
	return addrs
}

// Servers returns the primary that there was at first, and then the replicas.
func (s *Sentinel) Servers() []*Server { return s.servers }

// Primary returns the server that most Sentinels name, and waits until it says itself
// that it is one.
func (s *Sentinel) Primary() *Server {
	s.t.Helper()
	return s.awaitPrimary(func(*Server) bool { return true })
}

// Failover has the Sentinels replace the primary, as an operator does, and returns the
// new one when the old one follows it.
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	old := s.Primary()
	var asked time.Time
	next := s.awaitPrimary(func(now *Server) bool {
		// It refuses while the last one is not quite over, and gives one up that takes
		// longer than its failover-timeout.
		if now == old && time.Since(asked) > sentinelTimeout*3/2 {
			if _, err := s.ask(s.sentinels[0], "SENTINEL", "FAILOVER", SentinelName); err == nil {
				asked = time.Now()
			}
		}
		return now != old
	})
	eventually(s.t, "the old primary to follow", func() bool { return Role(old) == "slave" })
	return next
}

// Patience sets after how long without an answer a server is replaced, from now on.
func (s *Sentinel) Patience(d time.Duration) {
	s.t.Helper()
	for _, w := range s.sentinels {
		if _, err := s.ask(w, "SENTINEL", "SET", SentinelName, "down-after-milliseconds", strconv.FormatInt(d.Milliseconds(), 10)); err != nil {
			s.t.Fatalf("drivertest: %v", err)
		}
	}
}

// AwaitFailover waits until another server than that one is the primary, and returns
// it.
func (s *Sentinel) AwaitFailover(old *Server) *Server {
	s.t.Helper()
	return s.awaitPrimary(func(now *Server) bool { return now != old })
}

// Partition cuts the way from the primary to its replicas, and to no one else: what is
// written from now on no replica ever has, until Rejoin. They stay good enough to be
// promoted for some seconds.
//
// It is done with the rights of those who replicate and not with a proxy: Sentinel
// mends the configuration of a replica that has its primary's address from elsewhere.
func (s *Sentinel) Partition() {
	s.t.Helper()
	p := s.Primary()
	p.MustDo("ACL", "SETUSER", "default", "-psync", "-sync")
	p.MustDo("CLIENT", "KILL", "TYPE", "replica")
	eventually(s.t, "the replicas to be gone", func() bool { return strings.Contains(info(p), "connected_slaves:0") })
}

// Rejoin ends Partition of a server.
func (s *Sentinel) Rejoin(p *Server) {
	s.t.Helper()
	p.MustDo("ACL", "SETUSER", "default", "+psync", "+sync")
}

// AwaitReplicas waits until so many replicas are in step with the primary.
func (s *Sentinel) AwaitReplicas(n int) {
	s.t.Helper()
	eventually(s.t, "the replicas to be in step", func() bool {
		up := 0
		for _, r := range s.servers {
			if Role(r) == "slave" && strings.Contains(info(r), "master_link_status:up") {
				up++
			}
		}
		return up >= n
	})
}

func (s *Sentinel) awaitPrimary(good func(*Server) bool) (found *Server) {
	s.t.Helper()
	within(s.t, 2*patience, "a primary that Sentinel names", func() bool {
		votes := map[string]int{}
		for _, w := range s.sentinels {
			v, _ := s.ask(w, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelName)
			if addr, _ := v.([]any); len(addr) == 2 {
				port, _ := addr[1].(string)
				votes[port]++
			}
		}
		for _, server := range s.servers {
			if votes[strconv.Itoa(server.port)] > len(s.sentinels)/2 && good(server) && Role(server) == "master" {
				found = server
				return true
			}
		}
		return false
	})
	return found
}

func (s *Sentinel) awaitAcquainted(sentinels, replicas int) {
	s.t.Helper()
	eventually(s.t, "Sentinels to know each other and the replicas", func() bool {
		for _, w := range s.sentinels {
			v, _ := s.ask(w, "SENTINEL", "MASTER", SentinelName)
			about := flat(v)
			if about["num-other-sentinels"] != strconv.Itoa(sentinels-1) || about["num-slaves"] != strconv.Itoa(replicas) {
				return false
			}
			v, _ = s.ask(w, "SENTINEL", "REPLICAS", SentinelName)
			list, _ := v.([]any)
			for _, r := range list {
				if flat(r)["master-link-status"] != "ok" {
					return false
				}
			}
		}
		return true
	})
}

func flat(v any) map[string]string {
	list, _ := v.([]any)
	m := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		m[name], _ = list[i+1].(string)
	}
	return m
}

func (s *Sentinel) ask(w *watcher, args ...string) (any, error) {
	c, err := dialRaw(w.addr())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	v, err := c.do(args)
	if se, ok := v.(*driver.ServerError); ok {
		return nil, se
	}
	return v, err
}
