//go:build linux

package child

import (
	"os"
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
			gone(t, time.Second, pid)
		})
	}
}

// A keeper that was stopped for longer than the lease finds newer orders when it
// wakes: the lease was renewed all the time, and the command must live.
func TestKeeperThatWakesLateReadsItsOrdersFirst(t *testing.T) {
	z := startZamok(t, config{Argv: sh("echo up; sleep 2.5; exit 9"), TTL: time.Second, KillAfter: 100 * time.Millisecond})
	z.line()
	keeper := z.keeper(0)
	if err := unix.Kill(keeper, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(1500 * time.Millisecond) // longer than the lease it knows of
	if err := unix.Kill(keeper, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if o := z.wait(9); o.End != Exited || o.LeaseLost {
		t.Errorf("result %+v", o)
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
