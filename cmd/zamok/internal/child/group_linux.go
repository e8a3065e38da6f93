package child

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pidfdProcessGroup makes pidfd_send_signal signal the group that the process
// leads (PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9).
const pidfdProcessGroup = 1 << 2

// pin holds on to the leader's identity. The keeper is not the leader's parent:
// if zamok dies, init reaps the leader, and if all of the group died in the same
// moment too, the bare number could name a stranger.
func (g *group) pin() {
	if fd, err := unix.PidfdOpen(g.id, 0); err == nil {
		g.pinned = fd
	}
}

// signal sends sig to the group and to the strays. The list of processes is
// taken before the signal: afterwards children of the dead have another parent.
// Only /proc/PID/stat is read up to the moment of the group's signal, which never
// waits for the process concerned, as reading its memory (environ) may.
func (g *group) signal(sig unix.Signal) {
	procs, _ := processes()
	g.signalGroup(sig)
	for _, p := range g.findStrays(procs) {
		p.signal(sig)
	}
}

func (g *group) signalGroup(sig unix.Signal) {
	if g.pinned >= 0 {
		err := unix.PidfdSendSignal(g.pinned, sig, nil, pidfdProcessGroup)
		if err == nil || errors.Is(err, unix.ESRCH) {
			return
		}
	}
	_ = g.killpg(sig) // ESRCH: it has ended. EPERM: not ours to kill (see "not covered").
}

// alive reports whether a process of the group or a stray still runs. Zombies
// do not. Without /proc it cannot tell zombies apart and errs on the safe side.
func (g *group) alive() bool {
	procs, err := processes()
	if err != nil {
		return g.answers()
	}
	for _, p := range procs {
		if p.group == g.id && !p.dead {
			return true
		}
	}
	return len(g.findStrays(procs)) > 0
}

// tellsZombies reports whether alive can see the end of a group whose leader has
// not been reaped.
func tellsZombies() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// findStrays lists the living who left the group and still belong to it. Strays
// that were found once stay known when their parents are gone.
func (g *group) findStrays(procs map[int]process) []process {
	children := map[int][]int{}
	var queue []int
	for pid, p := range procs {
		children[p.parent] = append(children[p.parent], pid)
		_, known := g.strays[pid]
		if p.group == g.id || known && g.strays[pid] == p.start || p.session == g.session && !p.dead && p.marked(g.mark) {
			queue = append(queue, pid)
		}
	}
	var strays []process
	seen := map[int]bool{os.Getpid(): true} // not a descendant; never kill oneself whatever /proc says
	for len(queue) > 0 {
		pid := queue[0]
		queue = append(queue[1:], children[pid]...)
		p := procs[pid]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		if p.group != g.id && !p.dead {
			strays = append(strays, p)
			g.strays[pid] = p.start
		}
	}
	return strays
}

// remember finds the strays while their parents still live: afterwards nothing
// leads from the group to them.
func (g *group) remember() {
	if procs, err := processes(); err == nil {
		g.findStrays(procs)
	}
}

// owns reports whether the process group pgrp is the command's, or a job within
// it (zamok run … bash), or has no members any more.
func (g *group) owns(pgrp int) bool {
	procs, _ := processes()
	for _, p := range procs {
		if p.group == pgrp && pgrp != g.id && !p.dead && !p.marked(g.mark) {
			return false
		}
	}
	return true
}

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent, group, session int
	start                       uint64 // in ticks since boot: tells two users of one pid apart
	dead                        bool   // a zombie, or less
}

func processes() (map[int]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	procs := make(map[int]process, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := stat(pid); ok {
			procs[pid] = p
		}
	}
	if len(procs) == 0 {
		return nil, errors.New("no process is visible in /proc")
	}
	return procs, nil
}

func stat(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// pid (comm) state ppid pgrp session … ; comm may contain anything, even ')'.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return process{}, false
	}
	p := process{pid: pid, dead: f[0] == "Z" || f[0] == "X" || f[0] == "x"}
	p.parent, _ = strconv.Atoi(f[1])
	p.group, _ = strconv.Atoi(f[2])
	p.session, _ = strconv.Atoi(f[3])
	p.start, _ = strconv.ParseUint(f[19], 10, 64)
	return p, true
}

// marked looks for 128 random bits, so finding them anywhere in the environment
// is proof enough.
func (p process) marked(mark string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	return err == nil && mark != "" && bytes.Contains(b, []byte(mark))
}

// signal sends sig to exactly this process: the descriptor fixes whom, and the
// start time then proves that it is the one that was listed.
func (p process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if now, ok := stat(p.pid); !ok || now.start != p.start {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		return
	}
	_ = unix.Kill(p.pid, sig)
}

// reapOrphans buries what init would: in a container zamok may be process 1, and
// then orphans become its children. The command and the keeper are left alone.
func reapOrphans(ours ...int) {
	if os.Getpid() != 1 {
		return
	}
	procs, _ := processes()
next:
	for pid, p := range procs {
		for _, o := range ours {
			if pid == o {
				continue next
			}
		}
		if p.parent == 1 && p.dead {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// setProcessName sets what ps and pkill show; the name of the executable else.
func setProcessName(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}
