package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Server is a redis-server process of one test.
type Server struct {
	t    testing.TB
	port int
	dir  string
	args []string

	mu       sync.Mutex
	proc     *process
	idle     []*rawConn // connections of Do that are not in use
	ownInfos int64      // INFO calls made by Commands since the statistics were reset
}

// process is one run of the binary.
type process struct {
	p      *os.Process
	exited chan struct{} // closed after err and log are final
	err    error
	log    bytes.Buffer
}

// StartServer starts a redis-server on a free port of the loopback interface,
// in a directory of its own and without persistence, and returns when it
// answers PING. args are appended to its command line, for example
// "--appendonly", "yes". The test's cleanup stops it.
//
// The binary is $ZAMOK_TEST_REDIS_SERVER, or else redis-server of the PATH
// (valkey-server works as well). A missing binary fails the test.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), args: args}
	t.Cleanup(s.Kill)
	var err error
	for range 10 { // the port may be taken between the look and the start
		s.port = freePort(t)
		if err = s.start(); err == nil {
			return s
		}
	}
	t.Fatalf("drivertest: cannot start a server: %v", err)
	return nil
}

// Addr returns host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns redis://host:port.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Do sends one command on a connection of its own and returns nil, an int64, a
// string or a []any; an error that the server sent is a *driver.ServerError. It
// may be called from many goroutines, and gives up after 10 s.
func (s *Server) Do(args ...string) (any, error) {
	c, err := s.conn()
	if err != nil {
		return nil, err
	}
	v, err := c.do(args)
	if err != nil {
		c.Close()
		return nil, err
	}
	s.mu.Lock()
	s.idle = append(s.idle, c)
	s.mu.Unlock()
	if se, ok := v.(*driver.ServerError); ok {
		return nil, se
	}
	return v, nil
}

// MustDo is Do, and fails the test on an error. It is for the goroutine of the
// test.
func (s *Server) MustDo(args ...string) any {
	s.t.Helper()
	v, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("drivertest: %.60q: %v", args, err)
	}
	return v
}

// Kill ends the process with SIGKILL and waits until it is gone. What was not
// on disk is lost. A server that is not running stays so.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.proc
	s.proc = nil
	for _, c := range s.idle {
		c.Close()
	}
	s.idle = nil
	s.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// Stop asks the server to end, as an operator would, and waits until it is
// gone. It saves what its configuration says.
func (s *Server) Stop() {
	s.t.Helper()
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	if p == nil {
		return
	}
	s.Do("SHUTDOWN") // answers only when it refuses
	select {
	case <-p.exited:
	case <-time.After(ioLimit):
		s.t.Errorf("drivertest: server %s did not shut down", s.Addr())
	}
	s.Kill()
}

// Restart kills the server if it runs, starts it on the same port and in the
// same directory, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	var err error
	for range 20 { // somebody else's connection may hold the port for a moment
		if err = s.start(); err == nil {
			return
		}
	}
	s.t.Fatalf("drivertest: cannot restart the server on %s: %v", s.Addr(), err)
}

// Pause stops the process with SIGSTOP: connections stay open, new ones are
// accepted by the kernel, and nothing is answered. Where there is no such signal
// the test fails.
func (s *Server) Pause() { s.signal("pause", pauseProcess) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal("resume", resumeProcess) }

func (s *Server) signal(what string, send func(*os.Process) error) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.t.Fatalf("drivertest: cannot %s a server that is not running", what)
	}
	if err := send(s.proc.p); err != nil {
		s.t.Fatalf("drivertest: cannot %s the server: %v", what, err)
	}
}

func (s *Server) conn() (*rawConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c, nil
	}
	return dialRaw(s.Addr())
}

// start runs the binary and waits for its first answer.
func (s *Server) start() error {
	path := binary(s.t)
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "notice",
	}, s.args...)
	p, err := run(path, args)
	if err != nil {
		return err
	}
	if err := s.awaitAnswer(p); err != nil {
		p.kill()
		return fmt.Errorf("%w\n%s", err, p.log.String())
	}
	s.mu.Lock()
	s.proc = p
	s.ownInfos = 0
	s.mu.Unlock()
	s.Do("CONFIG", "RESETSTAT") // refused where a password is set: then PINGs are counted
	return nil
}

func (s *Server) awaitAnswer(p *process) error {
	limit := time.After(ioLimit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := dialRaw(s.Addr()); err == nil {
			v, err := c.do([]string{"PING"})
			c.Close()
			se, refused := v.(*driver.ServerError)
			if err == nil && (!refused || se.Code() == "NOAUTH") {
				return nil
			}
		}
		select {
		case <-p.exited:
			return fmt.Errorf("server ended: %v", p.err)
		case <-limit:
			return errors.New("server does not answer PING")
		case <-tick.C:
		}
	}
}

// run starts the binary from a thread that lives as long as the process does
// (see serverAttr), in a goroutine that ends with the process.
func run(path string, args []string) (*process, error) {
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command(path, args...)
		cmd.Stdout, cmd.Stderr = &p.log, &p.log
		cmd.SysProcAttr = serverAttr()
		err := cmd.Start()
		p.p = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	return p, <-started
}

// kill also ends a paused process: SIGKILL needs no SIGCONT.
func (p *process) kill() {
	p.p.Kill()
	<-p.exited
}

func binary(t testing.TB) string {
	t.Helper()
	name := os.Getenv("ZAMOK_TEST_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("drivertest: %v: this test needs a real server: `apt-get install redis-server`, or set ZAMOK_TEST_REDIS_SERVER to a binary", err)
	}
	return path
}

// freePort looks below the range from which the kernel takes the ports of
// outgoing connections: otherwise one of those could take the port while the
// server restarts. A cluster's bus port, 10,000 higher, is still a port.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("drivertest: no free port between 20000 and 32000")
	return 0
}

// Counts says how often each command ran, by its name in lower case
// ("evalsha", "config|get"). Commands that a script runs are counted too.
type Counts map[string]int64

// Total returns the sum of all counts.
func (c Counts) Total() int64 {
	var n int64
	for _, v := range c {
		n += v
	}
	return n
}

// Since returns what was added since an earlier count. Commands that did not
// run in between are left out.
func (c Counts) Since(before Counts) Counts {
	d := Counts{}
	for name, n := range c {
		if n != before[name] {
			d[name] = n - before[name]
		}
	}
	return d
}

// Commands reads INFO commandstats. Its own INFO is not counted, nor is what
// StartServer needed to start.
func (s *Server) Commands() Counts {
	s.t.Helper()
	text, _ := s.MustDo("INFO", "commandstats").(string)
	c := Counts{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(rest, ",")
		c[name], _ = strconv.ParseInt(digits, 10, 64)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c["info"] -= s.ownInfos
	s.ownInfos++
	delete(c, "config|resetstat") // of start, counted after it had reset
	delete(c, "config")           // the same, as servers before 7.0 name it
	if c["info"] == 0 {
		delete(c, "info")
	}
	return c
}
