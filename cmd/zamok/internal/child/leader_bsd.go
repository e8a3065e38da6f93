//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package child

import "golang.org/x/sys/unix"

// peek reports whether the leader has exited, and reaps it then, since x/sys has
// no waitid here. The number of a group is not given away while it has members,
// so signals for the group still reach it and nobody else. If the leader was
// stopped since the last call, stopped is the signal that did it.
func (l *leader) peek() (exited bool, stopped unix.Signal) {
	if l.reaped {
		return true, 0
	}
	var status unix.WaitStatus
	pid, err := unix.Wait4(l.pid, &status, unix.WNOHANG|unix.WUNTRACED, nil)
	switch {
	case err != nil || pid != l.pid:
		return false, 0
	case status.Stopped():
		return false, status.StopSignal()
	}
	l.reaped, l.status = true, status
	return true, 0
}
