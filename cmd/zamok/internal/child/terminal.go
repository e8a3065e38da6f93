//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminal is stdin, if that is the controlling terminal of zamok's session.
type terminal struct {
	fd    int
	own   int  // zamok's process group
	eager bool // give it to the command at once
	given bool
	first *unix.Termios // modes before the command
	kept  *unix.Termios // modes of the command when it was stopped
}

// openTerminal returns nil if stdin is not the controlling terminal. Then the
// terminal is left alone: in echo x | zamok run … other members of the pipeline
// belong to the foreground group, and would lose it.
func openTerminal(o Options) *terminal {
	fd := int(o.Stdin.Fd())
	if _, err := foreground(fd); err != nil {
		return nil
	}
	t := &terminal{fd: fd, own: unix.Getpgrp()}
	t.first, _ = unix.IoctlGetTermios(fd, ioctlGetTermios)
	// For the same reason the command of zamok run … | less gets the terminal
	// only when it asks for it, by being stopped as it touches it (TTIN, TTOU).
	t.eager = !isPipe(o.Stdout) && !isPipe(o.Stderr)
	return t
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

func foreground(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) }

// mine reports whether zamok's group is in front. A shell puts it there with fg.
func (t *terminal) mine() bool {
	pgrp, err := foreground(t.fd)
	return err == nil && pgrp == t.own
}

// give puts the command's group in front, if zamok's is there: never steal it.
func (t *terminal) give(group int) bool {
	if t == nil || !t.mine() {
		return false
	}
	t.given = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil
	return t.given
}

// take brings zamok's group back in front, if the command's or a job of the
// command's is there. It is not if zamok was stopped from outside and the shell
// took over. SIGTTOU is ignored during a run, so this does not stop zamok.
func (t *terminal) take(from *group) {
	if t == nil || !t.given {
		return
	}
	t.given = false
	if pgrp, err := foreground(t.fd); err == nil && from.owns(pgrp) {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
}

// keep remembers the command's modes; shells set their own when a job stops.
func (t *terminal) keep() { t.kept, _ = unix.IoctlGetTermios(t.fd, ioctlGetTermios) }

// back sets the command's modes again when it goes on in front.
func (t *terminal) back() { t.set(&t.kept) }

// reset sets the modes from before the command: it was killed before it could.
func (t *terminal) reset() {
	if t != nil && t.mine() {
		t.set(&t.first)
	}
}

func (t *terminal) set(modes **unix.Termios) {
	if *modes != nil {
		_ = unix.IoctlSetTermios(t.fd, ioctlSetTermios, *modes)
		*modes = nil
	}
}
