//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// link is zamok's end of a keeper.
type link struct {
	pid     int
	ctl     *os.File // orders go here; its end is what the keeper watches for
	answers *os.File
	notes   <-chan note // closed when the keeper is dead
	quit    chan struct{}

	sent, acked uint64
	waiting     time.Duration // when the oldest order without an answer was sent (bootNow), or 0
	late        bool          // it was found late once
	acted       bool          // the keeper stopped the command
}

// self is the path of this binary. /proc/self/exe is the very file that runs,
// even if it was replaced or deleted since, as an upgrade during a long run does.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe", nil
		}
	}
	return os.Executable()
}

// startKeeper starts a keeper. It is ready when it says so in notes.
func startKeeper() (*link, error) {
	exe, err := self()
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	in, ctl, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	answers, out, err := os.Pipe()
	if err != nil {
		ctl.Close()
		return nil, err
	}
	defer out.Close()

	pid, err := syscall.ForkExec(exe, []string{keeperName, argKeeper}, &syscall.ProcAttr{
		Dir: "/",        // else it would keep a file system from being unmounted
		Env: []string{}, // no mark of an outer run, no passwords
		// Not the command's stdout or stderr: zamok run … | head must end.
		Files: []uintptr{in.Fd(), null.Fd(), null.Fd(), keeperAckFD: out.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		ctl.Close()
		answers.Close()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	l := &link{pid: pid, ctl: ctl, answers: answers, quit: make(chan struct{})}
	l.notes = receive(answers, l.quit)
	return l, nil
}

// order sends o. It never blocks for long: a keeper that does not read is as
// good as dead, and the caller replaces it.
func (l *link) order(o order) error {
	l.sent++
	o.Seq = l.sent
	if l.waiting == 0 {
		l.waiting = bootNow()
	}
	return send(l.ctl, o, 200*time.Millisecond)
}

// heard takes note of an answer.
func (l *link) heard(n note) {
	switch n.Kind {
	case noteOK:
		l.acked = n.Seq
		l.late = false
		l.waiting = 0
		if l.acked < l.sent {
			l.waiting = bootNow()
		}
	case noteMute:
		l.acted = true
	}
}

// hung reports that the keeper has not answered for five seconds, found twice
// with a pause: after zamok itself was stopped the answer may be there unread.
func (l *link) hung(now time.Duration) bool {
	const patience = 5 * time.Second
	if l.waiting == 0 || now-l.waiting < patience {
		return false
	}
	if !l.late {
		l.late = true
		l.waiting = now - patience + time.Second
		return false
	}
	return true
}

// await returns when the keeper has said kind, and for noteOK has confirmed all.
func (l *link) await(kind string, limit time.Duration) error {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for kind != noteOK || l.acked < l.sent {
		select {
		case n, ok := <-l.notes:
			if !ok {
				return errors.New("the keeper has died")
			}
			l.heard(n)
			if n.Kind == kind && kind != noteOK {
				return nil
			}
		case <-timeout.C:
			return fmt.Errorf("the keeper did not answer within %v", limit)
		}
	}
	return nil
}

// dismiss tells the keeper that its group has ended, and buries it. Afterwards
// the group's id may be reused: nobody will signal it any more.
func (l *link) dismiss() {
	err := l.order(order{Done: true})
	if err == nil {
		err = l.await(noteBye, 2*time.Second)
	}
	l.bury(err == nil)
}

// bury ends the keeper, if it does not go by itself, and reaps it.
func (l *link) bury(leaves bool) {
	if !leaves {
		_ = unix.Kill(l.pid, unix.SIGKILL) // before its pipe ends, or it would kill the group
	}
	for {
		if _, err := unix.Wait4(l.pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(l.quit)
	l.ctl.Close()
	l.answers.Close()
}
