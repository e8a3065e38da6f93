package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What this binary is told when it is the other side.
const (
	roleEnv = "ZAMOK_INTEROP_ROLE"
	addrEnv = "ZAMOK_INTEROP_ADDR"
)

// process is the other side.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	words  chan string
	exited chan struct{}
}

// again is a command that runs this binary in a role.
func again(t testing.TB, s server, role string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, addrEnv+"="+s.Addr())
	return cmd
}

// run starts a command. The test's cleanup kills it, and the kernel does when
// the test dies without cleanup: the thread that started it lives until it has
// ended.
func run(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, words: make(chan string, 100), exited: make(chan struct{})}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err1 := cmd.StdoutPipe()
	stdin, err2 := cmd.StdinPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			for lines := bufio.NewScanner(stdout); lines.Scan(); {
				p.words <- lines.Text()
			}
			_ = cmd.Wait()
			close(p.words)
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%v: `scripts/setup` installs what these tests need", err)
	}
	t.Cleanup(p.kill)
	return p
}

// kill is kill −9, and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// order sends an order and does not wait for its answer.
func (p *process) order(words ...string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, strings.Join(words, " ")); err != nil {
		p.t.Fatalf("%v: %v", words, err)
	}
}

// answer waits for the answer to an order.
func (p *process) answer() string {
	p.t.Helper()
	select {
	case word, ok := <-p.words:
		if !ok {
			p.t.Fatalf("%v ended instead of answering", p.cmd.Args)
		}
		return word
	case <-time.After(patience):
		p.t.Fatalf("%v does not answer within %v", p.cmd.Args, patience)
		panic("not reached")
	}
}

// ask sends an order and waits for its answer.
func (p *process) ask(words ...string) string {
	p.t.Helper()
	p.order(words...)
	return p.answer()
}

// must wants yes.
func (p *process) must(words ...string) {
	p.t.Helper()
	if got := p.ask(words...); got != "yes" {
		p.t.Fatalf("%v: %s, want yes", words, got)
	}
}

// mustNot wants no.
func (p *process) mustNot(words ...string) {
	p.t.Helper()
	if got := p.ask(words...); got != "no" {
		p.t.Fatalf("%v: %s, want no", words, got)
	}
}

// releases wants the lock to be given up, which not every library confirms.
func (p *process) releases(key string) {
	p.t.Helper()
	if got := p.ask("release", key); got == "no" {
		p.t.Fatalf("release: %s", got)
	}
}
