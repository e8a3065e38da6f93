//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package child

import "golang.org/x/sys/unix"

// Without /proc only the group itself is covered.

func (g *group) pin() {}

func (g *group) signal(sig unix.Signal) { _ = g.killpg(sig) }

// alive needs a leader that has been reaped.
func (g *group) alive() bool { return g.answers() }

// owns cannot tell a job of the command's from others.
func (g *group) owns(pgrp int) bool { return pgrp == g.id || unix.Kill(-pgrp, 0) == unix.ESRCH }

func (g *group) remember() {}

func tellsZombies() bool { return false }

func reapOrphans(...int) {}

func setProcessName(string) {} // ps shows argv[0]
