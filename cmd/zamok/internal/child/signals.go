//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"
)

// IgnoredAtStart lists the signals among those that Run forwards which were
// ignored when this process was started. Call it before any signal.Notify.
//
// Go shows this for INT and HUP only and replaces the others before main runs.
// A shell that starts a background job without job control ignores INT and QUIT
// together (POSIX, 2.12), so QUIT is taken to be ignored if INT is, and is
// ignored from now on; Go would print a stack dump and exit.
func IgnoredAtStart() []os.Signal {
	var ignored []os.Signal
	for _, s := range forwarded() {
		if signal.Ignored(s) {
			ignored = append(ignored, s)
		}
	}
	if slices.Contains(ignored, os.Signal(unix.SIGINT)) && !slices.Contains(ignored, os.Signal(unix.SIGQUIT)) {
		ignored = append(ignored, unix.SIGQUIT)
		signal.Ignore(unix.SIGQUIT)
	}
	return ignored
}

// forwarded lists what is passed on to the command. TSTP and CONT are, too, but
// they also concern zamok itself (jobcontrol.go).
func forwarded() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGWINCH, unix.SIGTSTP}
}

// signals are the signals of one run.
type signals struct {
	forward chan os.Signal
	cont    chan os.Signal // SIGCONT
	child   chan os.Signal // SIGCHLD
	pipe    chan os.Signal // SIGPIPE, thrown away
	wanted  []os.Signal
}

// listen starts to take signals, but none that was ignored at start: nohup, and
// the shell that started a background job, meant it.
func listen(ignored []os.Signal) *signals {
	s := &signals{
		forward: make(chan os.Signal, 64),
		cont:    make(chan os.Signal, 4),
		child:   make(chan os.Signal, 1),
		pipe:    make(chan os.Signal, 1),
	}
	for _, sig := range forwarded() {
		if slices.Contains(ignored, sig) {
			signal.Ignore(sig) // the program may have used Notify since it was started
		} else {
			s.wanted = append(s.wanted, sig)
		}
	}
	// Notify without signals would mean all signals.
	if len(s.wanted) > 0 {
		signal.Notify(s.forward, s.wanted...)
	}
	signal.Notify(s.cont, unix.SIGCONT)
	signal.Notify(s.child, unix.SIGCHLD)
	// A warning written to a closed stderr must not end zamok (Go would).
	signal.Notify(s.pipe, unix.SIGPIPE)
	// The command may own the terminal while zamok writes a warning to it: with
	// stty tostop that would stop zamok. And tcsetpgrp from behind sends it too.
	signal.Ignore(unix.SIGTTOU)
	return s
}

func (s *signals) stop() {
	for _, c := range []chan os.Signal{s.forward, s.cont, s.child, s.pipe} {
		signal.Stop(c)
	}
	signal.Reset(unix.SIGTTOU)
}

// Raise is for a command that was ended by a key at the terminal (Ctrl-C) after
// zamok had handed the terminal to its group: the script that called zamok, and
// the shell's loop around it, did not get that signal, and would go on with the
// next command. Raise sends it to zamok's own group, as the terminal would have,
// and zamok dies of it. In all other cases it does nothing. Call it last, right
// before os.Exit.
func (r Result) Raise() {
	if r.raise == 0 {
		return
	}
	var none unix.Rlimit
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &none) // the command's core is the one of interest
	dieWithGroup(r.raise)
}
