//go:build linux

package child

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// session is an interactive shell on a terminal of its own.
type session struct {
	t     *testing.T
	tty   *os.File // the master's side
	out   chan string
	seen  string
	shell *exec.Cmd
	dir   string
}

func newSession(t *testing.T) *session {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	conn, _ := master.SyscallConn()
	conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, tty: master, out: make(chan string, 64), dir: t.TempDir()}
	s.shell = exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	s.shell.Dir = s.dir
	s.shell.Env = append(os.Environ(), "PS1=<PROMPT>", "TERM=dumb", "HISTFILE=")
	s.shell.Stdin, s.shell.Stdout, s.shell.Stderr = slave, slave, slave
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	go func() {
		defer close(s.out)
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			if n > 0 {
				s.out <- string(b[:n])
			}
			if err != nil {
				return // EIO: everybody has closed the terminal
			}
		}
	}()
	noneLeft(t)
	t.Cleanup(func() {
		s.shell.Process.Kill()
		s.shell.Wait()
		master.Close()
		for range s.out {
		}
		if t.Failed() {
			t.Logf("the terminal showed, after what was expected last:\n%s", s.seen)
		}
	})
	s.expect("<PROMPT>")
	return s
}

// zamok makes ./name run zamok so configured.
func (s *session) zamok(name string, c config) {
	s.t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	script := "#!/bin/sh\nexec " + os.Args[0] + " " + argZamok + " '" + strings.ReplaceAll(string(b), "'", `'\''`) + "'\n"
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(script), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) send(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// expect reads until text was shown, and returns what came before it.
func (s *session) expect(text string) (before string) {
	s.t.Helper()
	timeout := time.After(patience)
	for {
		if before, after, ok := strings.Cut(s.seen, text); ok {
			s.seen = after
			return before
		}
		select {
		case more, ok := <-s.out:
			if !ok {
				s.t.Fatalf("the terminal was closed, expected %q", text)
			}
			s.seen += more
		case <-timeout:
			s.t.Fatalf("expected %q", text)
		}
	}
}

// bash is for commands that are stopped while they start others. dash does that
// by vfork: if the stop hits between vfork and exec, the child stops, the parent
// waits for it in a state in which it cannot stop itself, and nobody sees a stop.
// That is the kernel's way, with and without zamok.
func bash(script string) []string { return []string{"bash", "-c", script} }

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// The texts that commands print are quoted so that the echo of what was typed
// does not look like them.

func TestTerminalRead(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh(`echo up; read x; echo "got $x"; exit 3`)})
	s.send("./z\n")
	s.expect("up")
	s.send("hello\n")
	s.expect("got hello")
	s.expect("<PROMPT>")
	s.send("echo co''de=$?\n")
	s.expect("code=3")
}

func TestTerminalCtrlC(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh("echo up; exec sleep 1000"), Raise: true})
	s.send("./z\n")
	s.expect("up")
	s.send(ctrlC)
	s.expect("<PROMPT>")
	s.send("echo co''de=$?\n")
	s.expect("code=130")
	s.expect("<PROMPT>")

	s.zamok("trap", config{Argv: sh("trap 'exit 5' INT; echo up; while :; do sleep 0.01; done"), Raise: true})
	s.send("./trap\n")
	s.expect("up")
	s.send(ctrlC)
	s.expect("<PROMPT>")
	s.send("echo co''de=$?\n")
	s.expect("code=5")
}

// The script around zamok ends with it, and so does the shell's loop.
func TestTerminalCtrlCEndsTheScript(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh("echo up; exec sleep 1000"), Raise: true})
	for _, line := range []string{"bash -c './z; echo af''ter; :'", "for i in 1 2; do ./z; echo af''ter; done"} {
		s.send(line + "\n")
		s.expect("up")
		s.send(ctrlC)
		if got := s.expect("<PROMPT>"); strings.Contains(got, "after") {
			t.Errorf("%s went on: %q", line, got)
		}
	}
}

func TestTerminalCtrlZ(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh(`echo up; read x; echo "got $x"; exit 4`), TTL: time.Minute, KillAfter: time.Second})
	s.send("./z\n")
	for range 2 {
		s.expect("up")
		s.send(ctrlZ)
		s.expect("Stopped")
		s.expect("<PROMPT>")
		s.send("echo sh''ell; fg; echo co''de=$?\n")
		s.expect("shell")
		s.expect("./z") // said by fg
		s.send("up\n")  // what is typed now is the command's
		if s.expectAny("got up", "Stopped") != "got up" {
			t.Fatal("stopped again")
		}
		s.expect("code=4")
		s.expect("<PROMPT>")
		s.send("./z\n")
	}
	s.expect("up")
	s.send(ctrlC)
	s.expect("<PROMPT>")
}

// expectAny waits for one of the texts.
func (s *session) expectAny(texts ...string) string {
	s.t.Helper()
	timeout := time.After(patience)
	for {
		for _, text := range texts {
			if _, after, ok := strings.Cut(s.seen, text); ok {
				s.seen = after
				return text
			}
		}
		select {
		case more := <-s.out:
			s.seen += more
		case <-timeout:
			s.t.Fatalf("expected one of %q", texts)
		}
	}
}

// bg lets the command go on behind; it is stopped again when it reads the
// terminal, and then the shell says so and fg brings it back.
func TestTerminalBackground(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: bash(`echo up; while [ ! -e go ]; do sleep 0.01; done; echo behind; read x; echo "got $x"`), TTL: time.Minute, KillAfter: time.Second})
	s.send("./z\n")
	s.expect("up")
	s.send(ctrlZ)
	s.expect("Stopped")
	s.expect("<PROMPT>")
	s.send("bg\n")
	s.expect("<PROMPT>")
	s.send("touch go\n")
	s.expect("behind")
	for { // until the shell says that the job is stopped
		s.send("jobs; echo en''d\n")
		if strings.Contains(s.expect("end"), "Stopped") {
			break
		}
	}
	s.send("fg\n")
	s.expect("./z")
	s.send("line\n")
	s.expect("got line")
	s.expect("<PROMPT>")

	os.Remove(filepath.Join(s.dir, "go"))
	s.send("./z &\n")
	s.expect("up")
	s.send("touch go\n")
	s.expect("behind")
	for {
		s.send("jobs; echo en''d\n")
		if strings.Contains(s.expect("end"), "Stopped") {
			break
		}
	}
	s.send("fg\n")
	s.expect("./z")
	s.send("more\n")
	s.expect("got more")
}

// Stopped by Ctrl-Z for longer than the lease lasts: the keeper ends the command,
// by TERM first, and fg tells why.
func TestTerminalCtrlZForTooLong(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: bash(`trap 'echo by""e; exit 6' TERM; echo pid=$$.; while :; do sleep 0.01; done`), TTL: 5 * time.Second, KillAfter: 2 * time.Second})
	s.send("./z\n")
	s.expect("pid=")
	pid := atoi(t, s.expect("."))
	s.send(ctrlZ)
	s.expect("Stopped")
	s.expect("bye")
	gone(t, pid)
	s.send("fg; echo co''de=$?\n")
	s.expect("stopped, or starved")
	s.expect("code=6")
}

// In a pipeline the other members keep the terminal, but the command may read it.
func TestTerminalPipeline(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh(`echo up; read x; echo "got $x"`)})
	s.send("./z | cat\n")
	s.expect("up")
	s.send("hello\n")
	s.expect("got hello")
	s.expect("<PROMPT>")

	s.zamok("y", config{Argv: bash(`trap 'echo cont' CONT; echo up; while :; do sleep 0.01; done`), TTL: time.Minute, KillAfter: time.Second})
	s.send("./y | cat\n")
	s.expect("up")
	s.send(ctrlZ)
	s.expect("Stopped")
	s.expect("<PROMPT>")
	s.send("fg\n")
	s.expect("cont") // not before: the shell hands the terminal over after it has echoed the job
	s.send(ctrlC)
	s.expect("<PROMPT>")
	s.send("echo co''de=${PIPESTATUS[0]}\n")
	s.expect("code=130")
}

// A shell within: its jobs get the terminal, and zamok takes it back from them.
func TestTerminalShellInside(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}, TTL: time.Minute})
	s.send("./z\n")
	s.expect("<PROMPT>")
	s.send("sh -c 'echo in''side; exec sleep 1000'\n")
	s.expect("inside")
	s.send(ctrlZ)
	s.expect("Stopped")
	s.expect("<PROMPT>")
	s.send("kill -9 %1; while [ -n \"$(jobs -s)\" ]; do sleep 0.01; done\n")
	s.expect("<PROMPT>")
	s.send("exit 8\n")
	s.expect("<PROMPT>")
	s.send("echo co''de=$?\n")
	s.expect("code=8")
}

// The command leaves the terminal raw and is killed: zamok sets it right.
func TestTerminalModes(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh("stty raw -echo; kill -9 $$"), TTL: time.Minute})
	s.send("sh -c './z; stty -a'\n")
	got := s.expect("<PROMPT>")
	for _, mode := range []string{" icanon", " echo "} {
		if !strings.Contains(strings.ReplaceAll(got, "\n", " "), mode) {
			t.Errorf("%q is not set after the command: %s", mode, got)
		}
	}
}

// The terminal goes away (a closed window): HUP reaches the command.
func TestTerminalHangup(t *testing.T) {
	s := newSession(t)
	s.zamok("z", config{Argv: sh("echo pid=$$.; exec sleep 1000"), TTL: time.Minute, KillAfter: time.Second})
	s.send("./z\n")
	s.expect("pid=")
	pid := atoi(t, s.expect("."))
	s.tty.Close()
	gone(t, pid)
}
