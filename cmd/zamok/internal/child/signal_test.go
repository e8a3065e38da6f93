//go:build linux

package child

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestForwardedSignals(t *testing.T) {
	for name, sig := range map[string]unix.Signal{
		"INT": unix.SIGINT, "TERM": unix.SIGTERM, "HUP": unix.SIGHUP, "QUIT": unix.SIGQUIT,
		"USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2, "WINCH": unix.SIGWINCH, "CONT": unix.SIGCONT,
	} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh("trap 'echo got; exit 6' " + name + "; echo up; while :; do sleep 0.01; done")})
			z.line()
			z.signal(sig)
			if got := z.line(); got != "got" {
				t.Errorf("got %q", got)
			}
			o := z.wait(6)
			if o.End != Exited || name == "TERM" && o.Forwarded != unix.SIGTERM || name == "USR1" && o.Forwarded != 0 {
				t.Errorf("result %+v", o)
			}
		})
	}
}

// zamok waits for the command, however long it takes to obey; its end counts.
func TestForwardedSignalDoesNotEndTheRun(t *testing.T) {
	z := startZamok(t, config{Argv: sh("trap 'echo got' TERM; echo up; while :; do sleep 0.01; done")})
	z.line()
	for range 3 {
		z.signal(unix.SIGTERM)
		if got := z.line(); got != "got" {
			t.Fatalf("got %q", got)
		}
	}
	z.signal(unix.SIGUSR1)
	z.wait(138)
}

// nohup and sh's background jobs set signals to be ignored; through zamok they
// stay ignored for the command, and are not forwarded.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	for name, sigs := range map[string][]unix.Signal{"HUP": {unix.SIGHUP}, "INT QUIT": {unix.SIGINT, unix.SIGQUIT}} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh("grep SigIgn /proc/self/status; echo $$; while :; do sleep 0.01; done")}, func(c *exec.Cmd) {
				c.Path = "/bin/sh"
				c.Args = append([]string{"sh", "-c", "trap '' " + name + `; exec "$@"`, "sh"}, c.Args...)
			})
			fields := strings.Fields(z.line())
			mask, _ := strconv.ParseUint(fields[1], 16, 64)
			pid := z.pids(1)[0]
			for _, sig := range sigs {
				if mask&(1<<(sig-1)) == 0 {
					t.Errorf("%v is not ignored by the command", sig)
				}
				z.signal(sig)
				_ = unix.Kill(pid, sig)
			}
			z.signal(unix.SIGUSR1) // comes after them
			if o := z.wait(138); o.Forwarded != 0 {
				t.Errorf("result %+v", o)
			}
		})
	}
}

// A stopped command, without a terminal, is somebody's business; zamok goes on
// renewing its lease and does not stop.
func TestStoppedCommand(t *testing.T) {
	z := startZamok(t, config{Argv: sh("echo $$; exec sleep 1000")})
	pid := z.pids(1)[0]
	_ = unix.Kill(pid, unix.SIGSTOP)
	z.signal(unix.SIGWINCH)
	eventually(t, "stopped command", func() bool { return state(pid) == "T" })
	z.signal(unix.SIGTERM) // is taken once it goes on
	_ = unix.Kill(pid, unix.SIGCONT)
	z.wait(143)
}

// TSTP to zamok stops the command and then zamok, so that a shell sees it.
func TestStopSignal(t *testing.T) {
	z := startZamok(t, config{Argv: sh("echo $$; exec sleep 1000")}, ownGroup)
	pid := z.pids(1)[0]
	z.signal(unix.SIGTSTP)
	eventually(t, "stop of both", func() bool { return state(pid) == "T" && state(z.cmd.Process.Pid) == "T" })
	z.signal(unix.SIGCONT)
	eventually(t, "start of both", func() bool { return state(pid) != "T" && state(z.cmd.Process.Pid) != "T" })
	z.signal(unix.SIGTERM)
	z.wait(143)
}

func ownGroup(c *exec.Cmd) { c.SysProcAttr = &unix.SysProcAttr{Setpgid: true} }

// state is R, S, T (stopped), Z …
func state(pid int) string {
	b, _ := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if _, rest, ok := strings.Cut(string(b), ") "); ok {
		return rest[:1]
	}
	return ""
}
