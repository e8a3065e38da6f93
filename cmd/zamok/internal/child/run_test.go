//go:build linux

package child

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		argv []string
		code int
		end  End
	}{
		{"own code", sh("exit 7"), 7, Exited},
		{"success", []string{"true"}, 0, Exited},
		{"signal 9", sh("kill -9 $$"), 137, Exited},
		{"signal 15", sh("kill -15 $$"), 143, Exited},
		{"not in PATH", []string{"no-such-command-anywhere"}, 127, NotStarted},
		{"no such file", []string{filepath.Join(dir, "none")}, 127, NotStarted},
		{"not executable", []string{write("plain", "x", 0o600)}, 126, NotStarted},
		{"a directory", []string{dir}, 126, NotStarted},
		{"no #! line", []string{write("text", "echo hello\n", 0o700)}, 126, NotStarted},
		{"no interpreter", []string{write("script", "#!/no/such/interpreter\n", 0o700)}, 126, NotStarted},
		{"script", []string{write("good", "#!/bin/sh\nexit 3\n", 0o700)}, 3, Exited},
	} {
		t.Run(c.name, func(t *testing.T) {
			z := startZamok(t, config{Argv: c.argv})
			if o := z.wait(c.code); o.Code != c.code || o.End != c.end || (o.End == NotStarted) == (o.Err == "") {
				t.Errorf("result %+v, want code %d, end %d", o, c.code, c.end)
			}
		})
	}
}

func TestLook(t *testing.T) {
	dir, dir2 := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{dir + "/tool": 0o600, dir2 + "/tool": 0o700, dir + "/other": 0o600} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/none", "PATH=" + dir + ":" + dir2}
	if path, err := Look("tool", env); err != nil || path != dir2+"/tool" {
		t.Errorf("Look goes on after a file that cannot be executed: %q, %v", path, err)
	}
	var s *StartError
	if _, err := Look("other", env); !errors.As(err, &s) || s.Code != 126 {
		t.Errorf("not executable: %v", err)
	}
	for _, name := range []string{"nothing", "", dir + "/tool/x"} {
		if _, err := Look(name, env); !errors.As(err, &s) || s.Code != 127 {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The command inherits stdin and stdout themselves: what it reads and writes is
// unchanged, and zamok copies nothing.
func TestStreamsPassThrough(t *testing.T) {
	const size = 256 << 20
	in, inW := pipe(t)
	outR, out := pipe(t)
	z := startZamok(t, config{Argv: []string{"cat"}}, func(c *exec.Cmd) { c.Stdin, c.Stdout = in, out })
	in.Close()
	out.Close()
	sent := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		block := make([]byte, 1<<20)
		for i := range size / len(block) {
			for j := range 64 {
				block[j*1000+i%7] = byte(i*j + i)
			}
			h.Write(block)
			if _, err := inW.Write(block); err != nil {
				break
			}
		}
		inW.Close()
		sent <- h.Sum(nil)
	}()
	h := sha256.New()
	n, err := io.Copy(h, outR)
	if want := <-sent; err != nil || n != size || !bytes.Equal(want, h.Sum(nil)) {
		t.Errorf("read %d bytes, %v; same: %v", n, err, bytes.Equal(want, h.Sum(nil)))
	}
	z.wait(0)
}

func TestDescriptorsBeyond2(t *testing.T) {
	r, w := pipe(t)
	mine := len(inheritedFDs())
	z := startZamok(t, config{Argv: sh("echo three >&3; exec 3>&-; ls /proc/self/fd")}, func(c *exec.Cmd) { c.ExtraFiles = []*os.File{w} })
	w.Close()
	// Read to the end before zamok ends: the keeper must not have it open either.
	b, err := io.ReadAll(r)
	if err != nil || string(b) != "three\n" {
		t.Errorf("descriptor 3 got %q, %v", b, err)
	}
	// 0, 1, 2, and the directory that ls reads: nothing of zamok's leaks.
	if got := strings.Fields(z.rest()); len(got) != 4+mine {
		t.Errorf("the command has descriptors %v", got)
	}
	z.wait(0)
}

// zamok run … | head -1 ends: nobody but the command has stdout open for longer.
func TestPipelineEnds(t *testing.T) {
	z := startZamok(t, config{Argv: []string{"yes"}})
	if got := z.line(); got != "y" {
		t.Fatalf("got %q", got)
	}
	z.closeOut()
	z.wait(141)
}

func TestNoShell(t *testing.T) {
	z := startZamok(t, config{Argv: []string{"printf", "%s|", "$HOME", "a b", "*"}})
	if got := z.rest(); got != "$HOME|a b|*|" {
		t.Errorf("got %q", got)
	}
	z.wait(0)
}

func TestEnvironment(t *testing.T) {
	z := startZamok(t, config{Argv: sh("echo $A; echo $ZAMOK_RUN")}, func(c *exec.Cmd) { c.Env = append(os.Environ(), "A=x", "ZAMOK_RUN=outer") })
	if got := z.line(); got != "x" {
		t.Errorf("A=%q", got)
	}
	if got := strings.Fields(z.line()); len(got) != 2 || got[0] != "outer" || len(got[1]) != 32 {
		t.Errorf("%s=%q, want the outer mark and a new one", markVar, got)
	}
	z.wait(0)
}

// A background job would work on without the lock.
func TestRestOfGroupEndsWithCommand(t *testing.T) {
	for name, script := range map[string]string{
		"takes TERM":     "sleep 1000 & echo $!; exit 5",
		"ignores TERM":   "trap '' TERM; sleep 1000 & echo $!; exit 5",
		"left the group": "timeout 1000 sleep 1000 & echo $!; while ! pgrep -P $! >/dev/null; do :; done; exit 5",
	} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh(script), KillAfter: 100 * time.Millisecond, TTL: 10 * time.Minute})
			pid := z.pids(1)[0]
			if o := z.wait(5); o.End != Exited || o.Code != 5 {
				t.Errorf("result %+v", o)
			}
			if alive(pid) {
				t.Error("Run returned while a background job was alive")
			}
		})
	}
}

// A daemon has left the session and lost its parent: it means to stay.
func TestDaemonStays(t *testing.T) {
	z := startZamok(t, config{Argv: sh("setsid sh -c 'echo $$; exec >&-; sleep 1000' & read x <&0; exit 0")}, func(c *exec.Cmd) {
		r, w := pipe(t)
		c.Stdin = r
		t.Cleanup(func() { w.Close() })
		w.WriteString("\n")
	})
	pid := z.pids(1)[0]
	z.wait(0)
	if !alive(pid) {
		t.Error("the daemon was killed")
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
	gone(t, pid)
}

func TestMaxRun(t *testing.T) {
	z := startZamok(t, config{Argv: []string{"sleep", "1000"}, MaxRun: 50 * time.Millisecond, KillAfter: 10 * time.Second, TTL: 10 * time.Minute})
	if o := z.wait(143); o.End != MaxRun || o.Err == "" || o.Ran < 50*time.Millisecond {
		t.Errorf("result %+v", o)
	}
}

func TestCancel(t *testing.T) {
	z := startZamok(t, config{Argv: sh("trap '' TERM; echo up; sleep 1000"), Lose: true, KillAfter: 50 * time.Millisecond})
	z.line()
	z.lose.WriteString("c")
	if o := z.wait(137); o.End != Cancelled || o.Err != "enough" {
		t.Errorf("result %+v", o)
	}
}

// In a container zamok may be process 1: orphans become its children, and it
// must bury them as init would.
func TestProcessOneBuriesOrphans(t *testing.T) {
	const script = `(sleep 0.05 &)
i=0; while ps -o comm= -A | grep -q sleep && [ $i -lt 3000 ]; do sleep 0.01; i=$((i+1)); done
ps -o stat=,comm= -A`
	z := startZamok(t, config{Argv: sh(script)}, func(c *exec.Cmd) {
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal("unshare (util-linux) is needed")
		}
		if out, err := exec.Command(unshare, "-rpf", "--mount-proc", "true").CombinedOutput(); err != nil {
			t.Skipf("only in a process namespace of its own is zamok process 1, and this system lets us make none: %v: %s", err, out)
		}
		c.Path, c.Args = unshare, append([]string{"unshare", "-rpf", "--kill-child", "--mount-proc"}, c.Args...)
	})
	for _, line := range strings.Split(z.rest(), "\n") {
		if strings.HasPrefix(line, "Z") {
			t.Errorf("a zombie: %s", line)
		}
	}
	z.wait(0)
}
