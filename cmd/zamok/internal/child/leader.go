//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"errors"

	"golang.org/x/sys/unix"
)

// leader is the command's own process, a child of zamok.
type leader struct {
	pid    int
	reaped bool
	status unix.WaitStatus
}

// reap collects an exited leader. It waits if it has not exited.
func (l *leader) reap() {
	for !l.reaped {
		_, err := unix.Wait4(l.pid, &l.status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		l.reaped = true
	}
}
