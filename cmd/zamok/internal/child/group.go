//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"errors"

	"golang.org/x/sys/unix"
)

// markVar is the variable whose value marks the processes of a run. A run within
// a run appends its own mark, so that the outer one still finds its own.
const markVar = "ZAMOK_RUN"

// group is the command's process group and whoever belongs to it (see the
// package comment, "Who dies with the lease").
type group struct {
	id      int
	session int
	mark    string
	pinned  int // pidfd of the leader, or -1
	strays  map[int]uint64
}

func newGroup(id, session int, mark string) *group {
	return &group{id: id, session: session, mark: mark, pinned: -1, strays: map[int]uint64{}}
}

// terminate asks everybody to end. CONT follows TERM, since a process that is
// stopped (Ctrl-Z) takes no notice of TERM before it goes on.
func (g *group) terminate() {
	g.signal(unix.SIGTERM)
	g.signal(unix.SIGCONT)
}

// killpg is the plain way to signal the group. The id cannot have been reused:
// as long as a member lives no process can get it, and zamok does not reap the
// leader before the group has ended.
func (g *group) killpg(sig unix.Signal) error { return unix.Kill(-g.id, sig) }

// answers reports whether kill finds anybody. A zombie counts, so this can only
// tell the end of a group whose leader has been reaped.
func (g *group) answers() bool {
	return !errors.Is(g.killpg(0), unix.ESRCH)
}
