package itest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// What a process that a test starts is told.
const (
	roleEnv   = "ZAMOK_ITEST_ROLE"
	urlEnv    = "ZAMOK_ITEST_URL"
	targetEnv = "ZAMOK_ITEST_TARGET" // in place of a URL, see target
	libEnv    = "ZAMOK_ITEST_LIBRARY"
	kindEnv   = "ZAMOK_ITEST_KIND" // of what a holder takes; empty: of a mutex
	nameEnv   = "ZAMOK_ITEST_NAME" // and its name; empty: job
)

// childTTL is the TTL of the locks of a child.
const childTTL = 2 * time.Second

// writeScript is what a child does to the resource under its lock.
var writeScript = zamok.NewScript("write", `return redis.call('SET', KEYS[1], ARGV[1])`)

// dataOf is the key of that resource, in the slot of the lock's.
func dataOf(key string) string { return "data{" + key + "}" }

// process is a child. What it prints comes as lines.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string
	exited chan struct{}
	err    error // of its end, set before exited is closed
}

// start runs this binary again in a role.
func start(t *testing.T, lib library, url, role string, env ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, urlEnv+"="+url, libEnv+"="+lib.name)
	cmd.Env = append(cmd.Env, env...)
	return run(t, cmd)
}

// run starts a command. The test's cleanup kills it, and the kernel does when
// the test dies without cleanup: the thread that started it lives until it has
// ended.
func run(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, lines: make(chan string, 1000), exited: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	var err error
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err1 := p.cmd.StdoutPipe()
	p.stdin, err = p.cmd.StdinPipe()
	if err := errors.Join(err, err1); err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.read(stdout)
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) read(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		select {
		case p.lines <- lines.Text():
		default: // nobody reads them
		}
	}
}

// kill is kill −9, and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// say gives the child an order.
func (p *process) say(order string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, order); err != nil {
		p.t.Fatal(err)
	}
}

// expect waits for a line that begins with word and returns what follows it.
func (p *process) expect(word string) string {
	p.t.Helper()
	line := receive(p.t, p.lines, "line from the child that begins with "+word)
	rest, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		p.t.Fatalf("the child says %q, want %q", line, word)
	}
	return rest
}

// child is the main function of a process that a test started.
func child(role string) int {
	var d library
	for _, lib := range libraries {
		if lib.name == os.Getenv(libEnv) {
			d = lib
		}
	}
	to := target{URL: os.Getenv(urlEnv)}
	if text := os.Getenv(targetEnv); text != "" {
		if err := json.Unmarshal([]byte(text), &to); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			return 1
		}
	}
	driver, shut, err := d.open(to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	defer shut()
	c, err := zamok.New(driver, &zamok.Config{TTL: childTTL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	run := map[string]func(*zamok.Client) error{"holder": holder, "leaver": leaver, "round": round, "once": onceChild, "once-loop": onceLoop, "line": line}[role]
	if err := run(c); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// holder takes what it is told, waiting for it, and does what it is told.
func holder(c *zamok.Client) error {
	what := mutexKind
	for _, k := range append(kinds, pairKind) {
		if k.name == os.Getenv(kindEnv) {
			what = k
		}
	}
	name := cmp.Or(os.Getenv(nameEnv), "job")
	l, err := what.of(c, name, nil).Lock(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("held", l.Token(), l.Fence())
	ctx := context.Background()
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		switch orders.Text() {
		case "write":
			fmt.Println("writing")
			_, err := l.Run(ctx, writeScript, []string{dataOf(what.keyOf(name))}, "old")
			fmt.Println("write", kind(err))
		case "err":
			fmt.Println("err", kind(l.Err()), kind(l.Context().Err()))
		case "release":
			fmt.Println("release", kind(l.Release(ctx)))
		case "close":
			fmt.Println("close", kind(c.Close()))
		}
	}
	return nil // its parent has gone
}

// leaver takes the lock and ends without giving it back.
func leaver(c *zamok.Client) error {
	l, err := c.Mutex("job", &zamok.MutexConfig{TTL: time.Minute}).Lock(context.Background())
	if err == nil {
		fmt.Println("held", l.Token(), l.Fence())
	}
	return err
}

// round does a little of everything.
func round(c *zamok.Client) error {
	ctx := context.Background()
	m := c.Mutex("job", nil)
	for range 20 {
		l, err := m.TryLock(ctx)
		if err != nil {
			return err
		}
		waiter := goLock(ctx, m)
		_, runErr := l.Run(ctx, writeScript, []string{"data"}, "x")
		err = errors.Join(runErr, l.Extend(ctx, time.Minute), l.Check(ctx), l.Release(ctx))
		g := <-waiter
		if err = errors.Join(err, g.err); err != nil {
			return err
		}
		if err := g.lease.Release(ctx); err != nil {
			return err
		}
	}
	fmt.Println("ok", os.Getenv("GODEBUG"))
	return c.Close()
}

func kind(err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, zamok.ErrLost):
		return "lost"
	case errors.Is(err, zamok.ErrReleased):
		return "released"
	case errors.Is(err, zamok.ErrUnknown):
		return "unknown"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
