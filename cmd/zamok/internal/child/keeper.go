//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// keeperAckFD is where the keeper answers. Not 1: Go lets a program die from
// SIGPIPE when it writes to a broken pipe on 1 or 2, and a keeper that confirms
// an order to a zamok killed that moment must live on to kill the group.
const keeperAckFD = 3

// keeper is the state of the keeper process.
type keeper struct {
	answer *os.File
	group  *group
	termAt time.Duration // on the clock of bootNow
	killAt time.Duration
	termed bool
	killed bool
}

// keep is the main function of the keeper process. in is the pipe from zamok.
func keep(in, answer *os.File) int {
	settle()
	quit := make(chan struct{})
	defer close(quit)
	box := openInbox(in, quit)
	alarm, err := newAlarm()
	if err != nil {
		return 70 // zamok reads the end of the answer pipe
	}
	defer alarm.close()

	k := &keeper{answer: answer, termAt: never, killAt: never}
	k.tell(note{Kind: noteReady})
	for {
		// Orders before acts: when the keeper itself was stopped or starved, what has
		// been due for long may have been put off by an order that is in the pipe.
		orders, err := box.take()
		for _, o := range orders {
			if o.Done {
				k.tell(note{Kind: noteBye})
				return 0
			}
			k.obey(o)
		}
		if err != nil {
			// zamok is dead. KILL, not TERM: who kills the runner with -9 wants
			// the job gone, and nobody is left to see a TERM through.
			k.kill()
			return 0
		}
		k.act(bootNow())
		alarm.set(k.next())
		select {
		case <-box.some:
		case <-alarm.c:
		}
	}
}

// settle makes the keeper deaf to whatever is meant for the command, and lets
// go of everything that zamok inherited: a pipe held open here would keep its
// reader waiting (zamok run … 3>pipe).
func settle() {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE, unix.SIGALRM, unix.SIGVTALRM, unix.SIGPROF)
	unix.CloseOnExec(keeperAckFD)
	for _, fd := range inheritedFDs() {
		unix.Close(fd)
	}
	setProcessName(keeperName)
}

// inheritedFDs lists the descriptors from 3 up that came from the parent. They
// are those without close-on-exec: with it they would not be here, and Go sets
// it on all that it opens. In ascending order.
func inheritedFDs() []int {
	var fds []int
	add := func(fd int) {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 && fd > 2 {
			fds = append(fds, fd)
		}
	}
	if names, err := os.ReadDir("/dev/fd"); err == nil {
		for _, name := range names {
			if fd, err := strconv.Atoi(name.Name()); err == nil {
				add(fd)
			}
		}
		slices.Sort(fds) // they came sorted as text
		return fds
	}
	for fd := 3; fd < 256; fd++ {
		add(fd)
	}
	return fds
}

// tell ignores errors: a zamok that does not listen changes nothing here.
func (k *keeper) tell(n note) {
	_ = send(k.answer, n, 100*time.Millisecond)
}

// obey takes over an order and confirms it.
func (k *keeper) obey(o order) {
	if k.group == nil && o.Group > 1 {
		k.group = newGroup(o.Group, o.Session, o.Mark)
		k.group.pin() // the leader is alive, or a zombie of zamok's: the id is right
	}
	from := min(o.Stamp, bootNow())
	termAt, killAt := later(from, o.TermIn), later(from, o.KillIn)
	if k.termed {
		// The command was told to stop; a zamok that woke up and renewed does not
		// take that back, or a half-stopped command would run on.
		killAt = min(killAt, k.killAt)
	}
	k.termAt, k.killAt = termAt, killAt
	if k.group != nil && termAt >= never && killAt < never {
		k.group.remember() // zamok is about to stop the command, and the parents of strays with it
	}
	k.tell(note{Kind: noteOK, Seq: o.Seq})
}

// act does what is due.
func (k *keeper) act(now time.Duration) {
	switch {
	case k.group == nil || k.killed:
	case now >= k.killAt:
		k.accuse()
		k.kill()
	case now >= k.termAt && !k.termed:
		k.accuse()
		k.group.terminate()
	}
}

// accuse tells zamok, unless zamok itself had begun to stop the command, that
// the keeper does it. The note goes first: when zamok sees the command's end, the
// note is there too, and zamok can say why it ended.
func (k *keeper) accuse() {
	if k.termAt < never && !k.termed {
		k.termed = true
		k.tell(note{Kind: noteMute})
	}
}

func (k *keeper) next() time.Duration {
	switch {
	case k.group == nil || k.killed:
		return never
	case k.termed:
		return k.killAt
	}
	return min(k.termAt, k.killAt)
}

// kill repeats until nobody is left: a process outside the group may fork
// between being listed and being killed. It gives up after ten seconds, when
// what is left sits in a system call that cannot be interrupted; KILL is pending
// there.
func (k *keeper) kill() {
	k.killed = true
	if k.group == nil {
		return
	}
	for range 1000 {
		k.group.signal(unix.SIGKILL)
		if !k.group.alive() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
