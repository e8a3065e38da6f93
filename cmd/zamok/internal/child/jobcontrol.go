//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// forward passes a signal on to the group. The command's end, not the signal,
// ends the run.
func (r *run) forward(sig unix.Signal) {
	switch sig {
	case unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
		r.forwarded = sig
		r.group.remember() // the parents of strays may die of it
	case unix.SIGTSTP:
		r.tstp = true
	}
	_ = r.group.killpg(sig)
}

// follow is called when the command was stopped by sig.
func (r *run) follow(sig unix.Signal) {
	touched := sig == unix.SIGTTIN || sig == unix.SIGTTOU
	switch {
	case touched && r.tty != nil && !r.tty.given && r.tty.give(r.group.id):
		// It wants the terminal, and zamok has it: part of a pipeline.
		_ = r.group.killpg(unix.SIGCONT)
	case r.tty != nil || r.tstp:
		// Ctrl-Z, or a background job that touched the terminal. The shell knows
		// zamok only, so zamok must stop too for the shell to notice.
		r.suspend(sig)
	}
	// Else somebody examines the command; zamok goes on renewing the lease.
}

// suspend stops zamok's own group, and returns when it goes on. Nobody renews
// the lease meanwhile: the keeper ends the command if that takes too long.
//
// TSTP and TTIN, never STOP: in a group that no shell looks after (docker run
// -t) the kernel ignores them, and then the command just goes on, as it would
// without zamok.
func (r *run) suspend(by unix.Signal) {
	sig := unix.SIGTSTP
	if by == unix.SIGTTIN {
		sig = unix.SIGTTIN
	}
	if r.tty != nil && r.tty.given {
		r.hadTTY = true
		r.tty.keep()
		r.tty.take(r.group)
	}
	for len(r.sig.cont) > 0 {
		<-r.sig.cont // of before the stop
	}
	restore := stopGroup(sig, r.sig) // the script that called zamok stops as well
	select {
	case <-r.sig.cont:
	case <-time.After(time.Second): // it was ignored, or CONT is about to be delivered
	}
	restore()
	r.resume()
}

// resume lets the command go on after zamok was continued: in front if zamok is
// (fg), else behind (bg).
func (r *run) resume() {
	if r.tty != nil && !r.exited && (r.tty.eager || r.hadTTY) && r.tty.give(r.group.id) {
		r.tty.back()
	}
	r.tstp = false
	_ = r.group.killpg(unix.SIGCONT)
}
