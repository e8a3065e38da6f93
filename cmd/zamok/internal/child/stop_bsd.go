//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"
)

// stopGroup stops zamok's own process group. Go's Reset does not bring back the
// default action of TSTP, so zamok itself takes TTIN, which is at its default; a
// shell shows that as "tty input".
func stopGroup(sig unix.Signal, s *signals) (restore func()) {
	signal.Ignore(unix.SIGTSTP)
	_ = unix.Kill(0, sig)
	if sig != unix.SIGTTIN {
		_ = unix.Kill(unix.Getpid(), unix.SIGTTIN)
	}
	return func() {
		if slices.Contains(s.wanted, os.Signal(unix.SIGTSTP)) {
			signal.Notify(s.forward, unix.SIGTSTP)
		}
	}
}

// dieWithGroup sends a deadly signal to zamok's own process group. Of QUIT zamok
// does not die, or Go would print a stack dump; the caller exits with its code.
func dieWithGroup(sig unix.Signal) {
	if sig == unix.SIGQUIT {
		signal.Ignore(sig)
	} else {
		signal.Reset(sig)
	}
	_ = unix.Kill(0, sig)
}
