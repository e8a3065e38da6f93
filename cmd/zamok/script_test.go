//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// patience is how long a script waits for what must come. Nothing waits for all
// of it but a test that fails.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if code, ok := child.Intercept(os.Args); ok { // a keeper has another name than zamok
		syscall.Exit(code) // as below; a keeper has no environment
	}
	if filepath.Base(os.Args[0]) != "zamok" { // else this process is the program
		flag.Parse()
		_ = flag.Set("test.parallel", "6") // scripts wait more than they work
	}
	os.Exit(testscript.RunMain(m, map[string]func() int{"zamok": run}))
}

// TestScripts runs each script of testdata/script with a redis-server of its
// own. Besides testscript's own commands there are:
//
//	rc N CMD...           runs it and expects the exit code N
//	start ID CMD...       starts it in the background, writing ID.out and ID.err
//	signal ID SIG         sends it INT, TERM, KILL, STOP, CONT
//	end ID N              waits for its end and expects the exit code N
//	await FILE [TEXT]     waits until the file is there and contains the text
//	redis CMD...          runs a command on the server; stdout has the answer
//	redis-await V CMD...  waits until the answer is V
//	server ARG...         starts another server with these arguments, and goes on with that
//	members N ARG...      starts servers of a quorum: $M1, $M2… are their URLs, $TWIN1… other URLs of them
//	stopmember N          ends one of them; pausemember N and resumemember N stop it, and let it go on
//	configmember N K V    sets one of its settings
//	pause, resume         stop the server with SIGSTOP, let it go on
//	proxy                 puts a proxy before the server: $PROXY is its URL
//	blackhole, heal       the proxy passes nothing on; passes on again
//	certs                 makes ca.pem, cert.pem, key.pem; sets $TLSPORT
//	sentinel              starts a sentinel for the server: $SENTINEL is its host:port
//	cluster               starts one of 3 shards, and goes on with that; $NODE is the URL of one node
//	dead FILE             expects that no process is alive whose pid is in the file, within a second
//	becomes REGEXP CMD... runs the command until its output matches: a process tells what it does within a second
//	count N TEXT FILE     expects the text N times in the file
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s := &stage{t: t, jobs: map[string]*job{}}
			testscript.Run(t, testscript.Params{
				Files: []string{file}, Setup: s.setup, RequireExplicitExec: true, RequireUniqueNames: true,
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"rc": s.rc, "start": s.start, "signal": s.signal, "end": s.end, "await": s.await,
					"redis": s.redis, "redis-await": s.redisAwait, "server": s.newServer, "pause": s.pause, "resume": s.resume,
					"proxy": s.startProxy, "blackhole": s.blackhole, "heal": s.heal, "certs": s.certs, "sentinel": s.sentinel, "cluster": s.cluster,
					"members": s.startMembers, "stopmember": s.stopMember,
					"pausemember": s.pauseMember, "resumemember": s.resumeMember, "configmember": s.configMember,
					"dead": s.dead, "count": s.count, "becomes": becomes,
				},
			})
		})
	}
}

// stage is what one script has.
type stage struct {
	t      *testing.T
	vars   []string
	server *drivertest.Server
	proxy  *drivertest.Proxy
	jobs   map[string]*job

	members []*drivertest.Server // of a quorum
}

type job struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// inherited are the variables that a script may set and a started job sees.
var inherited = []string{"ZAMOK_REDIS", "REDIS_URL", "URL", "ADDR", "PORT", "PROXY", "TLSPORT", "SENTINEL", "NODE"}

func (s *stage) setup(env *testscript.Env) error {
	s.server = drivertest.StartServer(s.t)
	// With the race detector a program sleeps for a second before it exits: that
	// finds little, and would be a second more for each command of a script.
	env.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	env.Setenv("ZAMOK_REDIS", s.server.URL())
	env.Setenv("URL", s.server.URL())
	env.Setenv("ADDR", s.server.Addr())
	s.vars = env.Vars
	return nil
}

func (s *stage) rc(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "rc N CMD...")
	err := ts.Exec(args[1], args[2:]...)
	if got := exitCode(err); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func exitCode(err error) string {
	var e *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &e) && e.ExitCode() >= 0:
		return fmt.Sprint(e.ExitCode())
	}
	return err.Error()
}

func (s *stage) start(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "start ID CMD...")
	id := args[0]
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append([]string{}, s.vars...)
	for _, name := range inherited {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(ts.MkAbs(id + ".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs(id + ".err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	j := &job{cmd: cmd, ended: make(chan struct{})}
	s.jobs[id] = j
	go func() {
		_ = cmd.Wait()
		close(j.ended)
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		<-j.ended
	})
}

func (s *stage) job(ts *testscript.TestScript, id string) *job {
	j := s.jobs[id]
	want(ts, j != nil, "nothing was started as "+id)
	return j
}

func (s *stage) signal(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 2, "signal ID SIG")
	sig := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}[args[1]]
	want(ts, sig != 0, "no such signal")
	ts.Check(s.job(ts, args[0]).cmd.Process.Signal(sig))
}

func (s *stage) end(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 2, "end ID N")
	j := s.job(ts, args[0])
	select {
	case <-j.ended:
	case <-time.After(patience):
		ts.Fatalf("%s has not ended after %v; it said:\n%s", args[0], patience, ts.ReadFile(args[0]+".err"))
	}
	code := j.cmd.ProcessState.ExitCode()
	if ws := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		code = 128 + int(ws.Signal())
	}
	if fmt.Sprint(code) != args[1] {
		ts.Fatalf("%s ended with %d, want %s; it said:\n%s", args[0], code, args[1], ts.ReadFile(args[0]+".err"))
	}
}

// until polls what nothing announces.
func until(ts *testscript.TestScript, limit time.Duration, what string, cond func() bool) {
	for end := time.Now().Add(limit); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("still waiting for %s after %v", what, limit)
		}
	}
}

func (s *stage) await(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 1, "await FILE [TEXT]")
	text := strings.Join(args[1:], " ")
	seen := ""
	until(ts, patience, fmt.Sprintf("%q in %s", text, args[0]), func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if seen != string(b) {
			seen = string(b)
			ts.Logf("%s: %s", args[0], seen)
		}
		return err == nil && strings.Contains(seen, text)
	})
}

func becomes(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "becomes REGEXP CMD...")
	wanted, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	until(ts, patience, fmt.Sprintf("%q from %q", args[0], args[1:]), func() bool {
		_ = ts.Exec(args[1], args[2:]...)
		return wanted.MatchString(ts.ReadFile("stdout"))
	})
}

func (s *stage) redis(ts *testscript.TestScript, neg bool, args []string) {
	v, err := s.server.Do(args...)
	if neg != (err != nil) {
		ts.Fatalf("redis %q: %v, %v", args, v, err)
	}
	fmt.Fprintln(ts.Stdout(), v)
}

func (s *stage) redisAwait(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) >= 2, "redis-await VALUE CMD...")
	until(ts, patience, strings.Join(args, " "), func() bool {
		v, err := s.server.Do(args[1:]...)
		return err == nil && fmt.Sprint(v) == args[0]
	})
}

func (s *stage) newServer(ts *testscript.TestScript, neg bool, args []string) {
	s.server = drivertest.StartServer(s.t, args...)
	ts.Setenv("ZAMOK_REDIS", s.server.URL())
	ts.Setenv("URL", s.server.URL())
	ts.Setenv("ADDR", s.server.Addr())
}

func (s *stage) pause(*testscript.TestScript, bool, []string)  { s.server.Pause() }
func (s *stage) resume(*testscript.TestScript, bool, []string) { s.server.Resume() }

func (s *stage) startProxy(ts *testscript.TestScript, neg bool, args []string) {
	s.proxy = drivertest.StartProxy(s.t, s.server.Addr())
	ts.Setenv("PROXY", s.proxy.URL())
}

func (s *stage) blackhole(*testscript.TestScript, bool, []string) { s.proxy.Blackhole() }
func (s *stage) heal(*testscript.TestScript, bool, []string)      { s.proxy.Resume() }

func (s *stage) sentinel(ts *testscript.TestScript, neg bool, args []string) {
	port := freePort(ts)
	_, master, _ := net.SplitHostPort(s.server.Addr())
	conf := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 %s 1\n", port, master)
	ts.Check(os.WriteFile(ts.MkAbs("sentinel.conf"), []byte(conf), 0o600))
	s.start(ts, false, []string{"sentinel", "redis-server", ts.MkAbs("sentinel.conf"), "--sentinel"})
	ts.Setenv("SENTINEL", "127.0.0.1:"+port)
}

func (s *stage) cluster(ts *testscript.TestScript, neg bool, args []string) {
	c := drivertest.StartCluster(s.t, 3, 0)
	ts.Setenv("ZAMOK_REDIS", "redis+cluster://"+strings.Join(c.Addrs(), ","))
	ts.Setenv("NODE", c.Nodes()[0].URL())
}

func freePort(ts *testscript.TestScript) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (s *stage) dead(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 1, "dead FILE")
	for _, word := range strings.Fields(ts.ReadFile(args[0])) {
		var pid int
		if _, err := fmt.Sscan(word, &pid); err != nil || pid <= 1 {
			ts.Fatalf("%q is no pid", word)
		}
		until(ts, time.Second, "the end of process "+word, func() bool { return !alive(pid) })
	}
}

// alive says whether the process does anything: a zombie does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func (s *stage) count(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 3, "count N TEXT FILE")
	if n := strings.Count(ts.ReadFile(args[2]), args[1]); fmt.Sprint(n) != args[0] {
		ts.Fatalf("%q is %d times in %s, want %s", args[1], n, args[2], args[0])
	}
}

func want(ts *testscript.TestScript, ok bool, form string) {
	if !ok {
		ts.Fatalf("usage: %s", form)
	}
}
