//go:build linux

package child

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// patience is for what must come. Nothing waits for all of it but a test that fails.
const patience = time.Minute

// zamok is a running zamok of a test.
type zamok struct {
	t       *testing.T
	cmd     *exec.Cmd
	out     *bufio.Reader // stdout of the command, if not redirected
	stderr  *bytes.Buffer
	outFile *os.File
	lose    *os.File // config.Lose
	result  string
	done    chan error
}

// start starts zamok; set may change the command before that. At the end of the
// test nothing of it may be left.
func startZamok(t *testing.T, c config, set ...func(*exec.Cmd)) *zamok {
	t.Helper()
	z := &zamok{t: t, stderr: &bytes.Buffer{}, result: filepath.Join(t.TempDir(), "result"), done: make(chan error, 1)}
	c.Result = z.result
	arg, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	z.cmd = exec.Command(os.Args[0], argZamok, string(arg))
	for _, f := range set {
		f(z.cmd)
	}
	var toClose []*os.File
	if z.cmd.Stdout == nil {
		r, w := pipe(t)
		z.cmd.Stdout, z.outFile, z.out = w, r, bufio.NewReader(r)
		toClose = append(toClose, w)
	}
	if z.cmd.Stderr == nil {
		// A file: with a buffer, Wait would wait for whoever else has stderr.
		f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		z.cmd.Stderr = f
		t.Cleanup(func() {
			b, _ := os.ReadFile(f.Name())
			if t.Failed() && len(b) > 0 {
				t.Logf("stderr:\n%s", b)
			}
			f.Close()
		})
	}
	if c.Lose {
		r, w := pipe(t)
		z.cmd.ExtraFiles, z.lose = []*os.File{r}, w
		toClose = append(toClose, r)
	}
	if err := z.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range toClose {
		f.Close()
	}
	go func() { z.done <- z.cmd.Wait() }()
	noneLeft(t)
	return z
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// noneLeft fails the test if a process that it started, or an orphan of one, is
// alive at its end. Orphans that have ended are ours to reap.
func noneLeft(t *testing.T) {
	t.Cleanup(func() {
		deadline := time.Now().Add(patience)
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			switch {
			case errors.Is(err, unix.ECHILD):
				return
			case pid > 0:
				continue
			case time.Now().After(deadline):
				procs, _ := processes()
				for _, p := range procs {
					if p.parent == os.Getpid() {
						cmd, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
						t.Errorf("left behind: %d %q", p.pid, cmd)
						_ = unix.Kill(p.pid, unix.SIGCONT)
						_ = unix.Kill(p.pid, unix.SIGKILL)
					}
				}
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// line reads a line of the command's stdout.
func (z *zamok) line() string {
	z.t.Helper()
	s, err := z.out.ReadString('\n')
	if err != nil {
		z.t.Fatalf("read the command's output: %q, %v", s, err)
	}
	return strings.TrimSpace(s)
}

// pids reads n pids, one a line.
func (z *zamok) pids(n int) []int {
	z.t.Helper()
	var pids []int
	for range n {
		pid, err := strconv.Atoi(z.line())
		if err != nil {
			z.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func (z *zamok) signal(sig unix.Signal) {
	z.t.Helper()
	if err := unix.Kill(z.cmd.Process.Pid, sig); err != nil {
		z.t.Fatal(err)
	}
}

// wait waits for zamok's end and checks its exit code, -1 for death by a signal.
func (z *zamok) wait(code int) outcome {
	z.t.Helper()
	select {
	case err := <-z.done:
		if got := z.cmd.ProcessState.ExitCode(); got != code {
			z.t.Errorf("exit code %d (%v), want %d", got, err, code)
		}
	case <-time.After(patience):
		z.signal(unix.SIGKILL)
		z.t.Fatal("zamok does not end")
	}
	var o outcome
	if b, err := os.ReadFile(z.result); err == nil {
		if err := json.Unmarshal(b, &o); err != nil {
			z.t.Fatal(err)
		}
	}
	return o
}

// rest reads stdout to its end.
func (z *zamok) rest() string {
	b, err := io.ReadAll(z.out)
	if err != nil {
		z.t.Fatal(err)
	}
	return string(b)
}

// keeper finds the keeper's pid, other than old.
func (z *zamok) keeper(old int) (pid int) {
	z.t.Helper()
	eventually(z.t, "a keeper", func() bool {
		procs, _ := processes()
		for _, p := range procs {
			comm, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/comm")
			if p.parent == z.cmd.Process.Pid && string(comm) == keeperName+"\n" && p.pid != old && !p.dead {
				pid = p.pid
				return true
			}
		}
		return false
	})
	return pid
}

// eventually waits for ok, which no event tells of.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within %v", what, patience)
		}
	}
}

// lateness is how far behind a time that must not pass it is now, not counting
// for how long this machine let nobody work since the keeper had to act.
func lateness(t *testing.T, stalls *drivertest.Stalls, deadline time.Time, killAfter time.Duration) time.Duration {
	t.Helper()
	now := time.Now()
	stalled := stalls.Between(deadline.Add(-margin(killAfter)), now)
	t.Logf("%v before the deadline; stalled for %v", deadline.Sub(now), stalled)
	return now.Sub(deadline) - stalled
}

func alive(pid int) bool {
	p, ok := stat(pid)
	return ok && !p.dead
}

// gone waits until all are dead.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	eventually(t, fmt.Sprintf("end of %v", pids), func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// closeOut closes the reader's end of stdout.
func (z *zamok) closeOut() { z.outFile.Close() }

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
