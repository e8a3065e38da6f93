package child

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peek reports whether the leader has exited, without reaping it: as a zombie it
// holds the number of its group. If it was stopped since the last call, stopped
// is the signal that did it.
func (l *leader) peek() (exited bool, stopped unix.Signal) {
	if l.reaped {
		return true, 0
	}
	if _, ok := l.waitid(unix.WEXITED | unix.WNOWAIT); ok {
		return true, 0
	}
	sig, _ := l.waitid(unix.WSTOPPED)
	return false, unix.Signal(sig)
}

// waitid returns si_status of an event of the leader's, if there is one.
func (l *leader) waitid(events int) (status int32, ok bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, l.pid, &info, events|unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || info.Signo == 0 {
			return 0, false
		}
		break
	}
	// x/sys hides the union behind three ints (padded to the union's alignment,
	// which is a pointer's). For SIGCHLD it holds pid, uid, status.
	offset := (3*4+unsafe.Sizeof(uintptr(0))-1)/unsafe.Sizeof(uintptr(0))*unsafe.Sizeof(uintptr(0)) + 2*4
	return *(*int32)(unsafe.Add(unsafe.Pointer(&info), offset)), true
}
