//go:build linux

package child

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// A command with a child, and a grandchild that ignores TERM; it prints three pids.
const family = `trap '' TERM
sh -c 'sleep 1000 & echo $!; echo $$; wait' &
echo $$; while :; do wait; sleep 1; done`

// kill -9 on zamok: the whole group is dead at once, long before the deadline.
func TestKillZamok(t *testing.T) {
	z := startZamok(t, config{Argv: sh(family), TTL: 10 * time.Minute, KillAfter: time.Minute})
	pids := z.pids(3)
	z.signal(unix.SIGKILL)
	gone(t, pids...)
	z.wait(-1)
}

// Also with on-lost=ignore, which is about the lease, not about zamok's death.
func TestKillZamokThatIgnoresLoss(t *testing.T) {
	z := startZamok(t, config{Argv: sh(family), Ignore: true})
	pids := z.pids(3)
	z.signal(unix.SIGKILL)
	gone(t, pids...)
	z.wait(-1)
}

// Those who left the group but belong to the command die with it.
func TestKillZamokWithStrays(t *testing.T) {
	for name, script := range map[string]string{
		"own group":             `timeout 1000 sh -c 'echo $$; exec sleep 1000' & echo $!; wait`,
		"own group, orphan":     `(timeout 1000 sh -c 'echo $$; exec sleep 1000' & echo $!); sleep 1000`,
		"own session":           `setsid -w sh -c 'echo $$; exec sleep 1000' & echo $!; wait`,
		"no mark in its memory": `timeout 1000 env -i sh -c 'echo $$; exec sleep 1000' & echo $!; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh(script), TTL: 10 * time.Minute})
			pids := z.pids(2)
			z.signal(unix.SIGKILL)
			gone(t, pids...)
			z.wait(-1)
		})
	}
}

// A zamok within a zamok: the outer one's death ends the inner command.
func TestNestedRun(t *testing.T) {
	inner := `{"Argv":["sh","-c","echo $$; exec sleep 1000"]}`
	z := startZamok(t, config{Argv: []string{os.Args[0], argZamok, inner}, TTL: 10 * time.Minute})
	pids := z.pids(1)
	z.signal(unix.SIGKILL)
	gone(t, pids...)
	z.wait(-1)
}

// SIGSTOP on zamok: nobody renews, so the group is dead by the deadline.
func TestStopZamok(t *testing.T) {
	const ttl, killAfter = 3 * time.Second, 800 * time.Millisecond
	z := startZamok(t, config{Argv: sh(family), TTL: ttl, KillAfter: killAfter})
	pids := z.pids(3)
	stalls := drivertest.WatchStalls()
	defer stalls.Stop()
	z.signal(unix.SIGSTOP)
	stopped := time.Now()
	gone(t, pids[0]) // a zombie until zamok goes on
	gone(t, pids...)
	// A renewal before the stop is the latest that can count.
	if late := lateness(t, stalls, stopped.Add(ttl), killAfter); late > 0 {
		t.Errorf("the group lived for %v longer than the lease", late)
	}
	z.signal(unix.SIGCONT)
	o := z.wait(137)
	if o.End != Lost || !o.WhileStopped || !o.LeaseLost || o.Err == "" {
		t.Errorf("result %+v", o)
	}
}

// A command that ends by itself on TERM has its KillAfter for it, also when it
// is the keeper who asks, and when the command itself is stopped.
func TestStopZamokTermComesFirst(t *testing.T) {
	for name, stopChild := range map[string]bool{"running": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh(`trap 'echo bye; exit 4' TERM; echo $$; while :; do sleep 0.01; done`), TTL: 5 * time.Second, KillAfter: 2 * time.Second})
			pid := z.pids(1)[0]
			z.signal(unix.SIGSTOP)
			if stopChild {
				_ = unix.Kill(-pid, unix.SIGSTOP)
			}
			if got := z.line(); got != "bye" {
				t.Errorf("got %q", got)
			}
			gone(t, pid)
			z.signal(unix.SIGCONT)
			if o := z.wait(4); o.End != Lost || !o.WhileStopped {
				t.Errorf("result %+v", o)
			}
		})
	}
}

// A lease that is renewed lets the command run for as long as it likes.
func TestRenewed(t *testing.T) {
	z := startZamok(t, config{Argv: sh("sleep 4; exit 9"), TTL: 3 * time.Second, KillAfter: 300 * time.Millisecond})
	if o := z.wait(9); o.End != Exited || o.LeaseLost {
		t.Errorf("result %+v", o)
	}
}

func TestLoss(t *testing.T) {
	const ttl = 10 * time.Minute // the deadline is far: KillAfter counts
	z := startZamok(t, config{Argv: sh(`trap 'echo term' TERM; echo $$; while :; do sleep 0.01; done`), Lose: true, TTL: ttl, KillAfter: time.Second})
	pid := z.pids(1)[0]
	z.lose.WriteString("x")
	if got := z.line(); got != "term" {
		t.Errorf("got %q", got)
	}
	termed := time.Now()
	if got := z.rest(); got != "" {
		t.Errorf("TERM came twice: %q", got)
	}
	if took := time.Since(termed); took > 15*time.Second {
		t.Errorf("KILL came %v after TERM", took)
	}
	gone(t, pid)
	if o := z.wait(137); o.End != Lost || o.Err != errTaken.Error() || o.WhileStopped {
		t.Errorf("result %+v", o)
	}
}

// The deadline is sooner than KillAfter: KILL does not wait for it.
func TestLossKillsBeforeDeadline(t *testing.T) {
	const ttl, killAfter = 3 * time.Second, 800 * time.Millisecond
	for name, deaf := range map[string]bool{"context ends": false, "only the deadline passes": true} {
		t.Run(name, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh(family), Lose: true, Deaf: deaf, TTL: ttl, KillAfter: killAfter})
			pids := z.pids(3)
			stalls := drivertest.WatchStalls()
			defer stalls.Stop()
			z.lose.WriteString("r")
			if got := z.line(); got != "not renewed any more" {
				t.Fatalf("got %q", got)
			}
			last := time.Now()
			gone(t, pids...)
			if late := lateness(t, stalls, last.Add(ttl), killAfter); late > 0 {
				t.Errorf("alive for %v longer than the last renewal could have made the lease", late)
			}
			if o := z.wait(137); o.End != Lost {
				t.Errorf("result %+v", o)
			}
		})
	}
}

func TestLossIgnored(t *testing.T) {
	in, inW := pipe(t)
	z := startZamok(t, config{Argv: sh(`echo $$; read x; echo $x; exit 3`), Lose: true, Ignore: true, TTL: 2 * time.Second, KillAfter: 50 * time.Millisecond},
		func(c *exec.Cmd) { c.Stdin = in })
	pid := z.pids(1)[0]
	z.lose.WriteString("x")
	time.Sleep(2200 * time.Millisecond) // the lease's end passes; nothing may happen, so there is no event
	if !alive(pid) {
		t.Error("the command was stopped")
	}
	inW.WriteString("go on\n")
	if got := z.line(); got != "go on" {
		t.Errorf("got %q", got)
	}
	if o := z.wait(3); o.End != Exited || !o.LeaseLost || o.Err != errTaken.Error() {
		t.Errorf("result %+v", o)
	}
}

func TestKeeperIsApart(t *testing.T) {
	z := startZamok(t, config{Argv: sh("echo $$; exec sleep 1000"), TTL: time.Minute})
	leader := z.pids(1)[0]
	pid := z.keeper(0)
	p, _ := stat(pid)
	if p.session != pid || p.group == leader {
		t.Errorf("the keeper is in session %d, group %d", p.session, p.group)
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGUSR1} {
		_ = unix.Kill(pid, sig)
	}
	for fd, want := range map[string]string{"1": os.DevNull, "2": os.DevNull} {
		if got, err := os.Readlink("/proc/" + itoa(pid) + "/fd/" + fd); err != nil || got != want {
			t.Errorf("descriptor %s of the keeper is %q, %v", fd, got, err)
		}
	}
	z.signal(unix.SIGKILL)
	gone(t, leader, pid)
	z.wait(-1)
}

// The keeper is killed: another takes over, and works.
func TestKillKeeper(t *testing.T) {
	z := startZamok(t, config{Argv: sh(family), TTL: 10 * time.Minute, KillAfter: time.Minute})
	pids := z.pids(3)
	old := 0
	for range 6 { // more often than the number of tries for one that does not come up
		pid := z.keeper(old)
		awaitWatch(t, pid)
		_ = unix.Kill(pid, unix.SIGKILL)
		old = pid
	}
	last := z.keeper(old)
	awaitWatch(t, last)
	for _, pid := range pids {
		if !alive(pid) {
			t.Error("the command died with its keeper")
		}
	}
	z.signal(unix.SIGKILL)
	gone(t, append(pids, last)...)
	z.wait(-1)
}

// awaitWatch waits until a keeper has taken over its group: it has a pidfd then.
func awaitWatch(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "keeper that watches", func() bool {
		dir := "/proc/" + itoa(pid) + "/fd/"
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if to, _ := os.Readlink(dir + e.Name()); strings.Contains(to, "pidfd") {
				return true
			}
		}
		return false
	})
}

// The keeper is stopped: it does not answer the next renewal and is replaced.
func TestStopKeeper(t *testing.T) {
	z := startZamok(t, config{Argv: sh(family), TTL: 10 * time.Second, KillAfter: 500 * time.Millisecond})
	pids := z.pids(3)
	pid := z.keeper(0)
	_ = unix.Kill(pid, unix.SIGSTOP)
	next := 0
	eventually(t, "second keeper", func() bool {
		procs, _ := processes()
		for _, p := range procs {
			if p.parent == z.cmd.Process.Pid && p.pid != pid && p.pid != pids[0] && !p.dead {
				next = p.pid
				return true
			}
		}
		return false
	})
	awaitWatch(t, next)
	gone(t, pid)
	if !alive(pids[0]) {
		t.Error("the command died with its keeper")
	}
	z.signal(unix.SIGKILL)
	gone(t, pids...)
	z.wait(-1)
}

// zamok is killed at each step of the start: the command never runs unguarded,
// and before the go it does not run at all.
func TestKillZamokDuringStart(t *testing.T) {
	for _, step := range []string{"keeper started", "keeper ready", "forked", "confirmed", "go"} {
		t.Run(step, func(t *testing.T) {
			z := startZamok(t, config{Argv: sh("echo ran; exec sleep 1000"), DieAt: step, TTL: 10 * time.Minute})
			z.wait(-1)
			// Read to the end: whoever might print has ended.
			if got := z.rest(); got != "" && step != "go" {
				t.Errorf("the command ran: %q", got)
			}
		})
	}
}

// A lease that is lost before the command has started: it does not start.
func TestLostBeforeStart(t *testing.T) {
	c := config{Argv: sh("echo ran"), TTL: 30 * time.Nanosecond}
	z := startZamok(t, c)
	o := z.wait(70)
	if got := z.rest(); got != "" || o.End != Lost {
		t.Errorf("printed %q, result %+v", got, o)
	}
}
