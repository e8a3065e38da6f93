//go:build linux

package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A forwarded TERM ends the shell that a stray descends from; from then on
// nothing leads from the group to it, and it must be dead all the same when Run
// returns and the lock is released.
func TestForwardedTermReachesStrays(t *testing.T) {
	for name, script := range map[string]string{
		"own session":       `setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`,
		"own group, no env": `timeout 1000 env -i sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh(script), TTL: 10 * time.Minute, KillAfter: 300 * time.Millisecond})
			pid := z.pids(1)[0]
			z.signal(unix.SIGTERM)
			z.wait(143)
			if alive(pid) {
				t.Error("Run returned while a stray was alive")
			}
		})
	}
}

// A keeper that was stopped for longer than the lease finds newer orders when it
// wakes: the lease was renewed all the time, and the command must live.
func TestKeeperThatWakesLateReadsItsOrdersFirst(t *testing.T) {
	const ttl = 3 * time.Second
	in, inW := pipe(t)
	z := startZamok(t, config{Argv: sh("echo up; read x; exit 9"), Lose: true, TTL: ttl, KillAfter: 100 * time.Millisecond},
		func(c *exec.Cmd) { c.Stdin = in })
	z.line()
	keeper := z.keeper(0)
	if err := unix.Kill(keeper, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	z.lose.WriteString("l")    // nothing that happens to zamok from now on can end the lease
	<-time.After(ttl + ttl/10) // longer than the lease that the keeper knows of
	if err := unix.Kill(keeper, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	inW.WriteString("go on\n")
	if o := z.wait(9); o.End != Exited || o.LeaseLost {
		t.Errorf("result %+v", o)
	}
}

// The same without zamok: whatever lies in the pipe comes first, however much it
// is and however late each order but the last.
func TestOrdersBeforeActs(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	l, err := startKeeper()
	if err != nil {
		t.Fatal(err)
	}
	defer l.dismiss()
	tell := func(began, lasts time.Duration) {
		t.Helper()
		if err := l.order(order{Group: cmd.Process.Pid, Stamp: began, TermIn: lasts, KillIn: lasts}); err != nil {
			t.Fatal(err)
		}
	}
	tell(bootNow(), time.Hour)
	if err := l.await(noteOK, patience); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(l.pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "stop of every thread of the keeper", func() bool { return allStopped(l.pid) })
	for range 100 {
		tell(bootNow()-time.Hour, time.Minute)
	}
	tell(bootNow(), time.Hour)
	if err := unix.Kill(l.pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := l.await(noteOK, patience); err != nil || l.acted || !alive(cmd.Process.Pid) {
		t.Errorf("%v; the keeper acted: %v; the command lives: %v", err, l.acted, alive(cmd.Process.Pid))
	}
}

// allStopped says whether each thread of a process stands still: SIGSTOP reaches
// them one after the other.
func allStopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return err == nil && len(stats) > 0
}

// A zamok that was stopped just before it wrote must not take its keeper for dead.
func TestLateOrderIsWritten(t *testing.T) {
	r, w := pipe(t)
	const long = -time.Hour // the time to write it was over long ago
	if err := send(w, note{Kind: noteOK}, long); err != nil {
		t.Error(err)
	}
	var err error
	for range 1 << 16 {
		if err = send(w, note{Kind: noteOK}, long); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("into a full pipe: %v", err)
	}
	r.Close()
	if err := send(w, note{Kind: noteOK}, long); !errors.Is(err, unix.EPIPE) {
		t.Errorf("without a reader: %v", err)
	}
}

// What zamok ignores for its own sake is not ignored in the command.
func TestCommandHasTheSignalsThatZamokHad(t *testing.T) {
	mine, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	z := startZamok(t, config{Argv: []string{"grep", "SigIgn", "/proc/self/status"}})
	got := z.line()
	z.wait(0)
	if !strings.Contains(string(mine), got) {
		t.Errorf("the command has %q, zamok was started with another set", got)
	}
}

// Without PATH the C library looks in /bin and /usr/bin.
func TestLookWithoutPath(t *testing.T) {
	if path, err := Look("true", []string{"HOME=/"}); err != nil {
		t.Errorf("Look = %q, %v", path, err)
	}
	if path, err := Look("true", []string{"PATH=/nowhere"}); err == nil {
		t.Errorf("found %q in a PATH that does not have it", path)
	}
}
