//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readable waits at most so long for something to read. A read alone could not be
// ended, and its goroutine would stay.
func readable(f *os.File, wait time.Duration) bool {
	fd := int(f.Fd())
	if fd >= unix.FD_SETSIZE {
		return true
	}
	var set unix.FdSet
	set.Set(fd)
	limit := unix.NsecToTimeval(wait.Nanoseconds())
	n, err := unix.Select(fd+1, &set, nil, nil, &limit)
	return err == nil && n > 0
}

// resizes tells when the terminal has another size.
func resizes() (resized <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// stopSelf stops the whole job, as the terminal would at Ctrl-Z, and returns when
// it is continued. Where nobody could continue it the system does not stop it;
// the wait is for that case.
func stopSelf() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond):
	}
}
