//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package child

import "golang.org/x/sys/unix"

// The requests that set at once: waiting for output to drain could take forever.
const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
)
