//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

var errNoKeeper = errors.New("keeper processes die as soon as they are started")

// loop runs until nobody of the group is alive. Nothing in it waits for anything
// but its select, save for a short while when zamok stops itself.
func (r *run) loop(ctx context.Context) {
	lost, cancelled := r.o.Lease.Context().Done(), ctx.Done()
	var maxRun <-chan time.Time
	if r.o.MaxRun > 0 {
		t := time.NewTimer(r.o.MaxRun)
		defer t.Stop()
		maxRun = t.C
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		r.tellKeeper()
		if r.over() {
			return
		}
		tick.Reset(r.interval())
		select {
		case sig := <-r.sig.forward:
			r.forward(sig.(unix.Signal))
		case <-r.sig.cont:
			r.resume()
		case <-r.sig.child:
			reapOrphans(r.leader.pid, r.keeperPID())
		case <-r.sig.pipe:
		case n, ok := <-r.notes():
			r.heard(n, ok)
		case <-lost:
			lost = nil
			r.lost(context.Cause(r.o.Lease.Context()), "the lease was lost")
		case <-cancelled:
			cancelled = nil
			r.stop(Cancelled, context.Cause(ctx), "cancelled")
		case <-maxRun:
			r.stop(MaxRun, fmt.Errorf("it ran for %v", r.o.MaxRun), "it ran for the longest time allowed")
		case <-r.alarm.c:
		case <-tick.C:
		}
		r.look()
		r.act()
	}
}

// interval is how long to wait for events before looking again: at the lease,
// which may have been renewed, and at the processes that are told to end, of
// whose end there is no event as most are not our children.
func (r *run) interval() time.Duration {
	if r.stopAt != 0 || r.exited {
		return 10 * time.Millisecond
	}
	term, _ := r.due()
	return min(max((term-bootNow())/10, 2*time.Millisecond), time.Second)
}

// due tells when TERM and KILL are due, as things stand now.
func (r *run) due() (term, kill time.Duration) {
	term, kill = never, never
	if r.o.OnLost == Terminate {
		if deadline := r.watch.deadline(); deadline < never {
			term, kill = deadline-r.o.KillAfter, deadline-margin(r.o.KillAfter)
		}
	}
	if r.stopAt != 0 {
		term, kill = never, min(kill, r.stopAt+r.o.KillAfter)
	}
	return term, kill
}

// tellKeeper tells the keeper what is due if that has changed, which is when the
// lease was renewed or the command is being stopped. Once told, the keeper
// counts alone: an unchanged plan needs no word, and a zamok that hangs gives none.
func (r *run) tellKeeper() {
	term, kill := r.due()
	next := kill
	if r.stopAt == 0 {
		next = min(kill, later(term, -lead(r.o.KillAfter)))
	}
	r.alarm.set(next)

	now := bootNow()
	plan := order{Group: r.group.id, Session: r.group.session, Mark: r.group.mark, TermIn: term, KillIn: kill}
	if r.link == nil || plan == r.told {
		return
	}
	r.told = plan
	plan.Stamp = now
	if term < never {
		plan.TermIn = term - now
	}
	if kill < never {
		plan.KillIn = kill - now
	}
	if err := r.link.order(plan); err != nil {
		r.replaceKeeper(err)
	}
	if r.stopAt == 0 {
		r.group.remember() // once a renewal: the leader may be killed alone
	}
}

// look sees what became of the leader.
func (r *run) look() {
	if r.exited {
		return
	}
	exited, stopped := r.leader.peek()
	if stopped != 0 {
		r.follow(stopped)
	}
	if !exited {
		return
	}
	r.exited = true
	r.hadTTY = r.tty != nil && r.tty.given
	r.tty.take(r.group)
}

// over reports that everybody has ended. When the leader has, the rest of its
// group is told to end as well: the lease is about to be released, and a
// background job must not work on without it.
func (r *run) over() bool {
	if !r.exited {
		return false
	}
	if !tellsZombies() {
		r.leader.reap()
	}
	if !r.group.alive() {
		return true
	}
	if r.stopAt == 0 {
		r.stop(Exited, nil, "it has ended but left processes behind")
	}
	return false
}

// act does what is due, and checks the keeper.
func (r *run) act() {
	now := bootNow()
	term, kill := r.due()
	switch {
	case r.stopAt == 0 && now >= later(term, -lead(r.o.KillAfter)):
		r.lost(r.lossCause(), "the lease was not renewed in time")
	case r.stopAt != 0 && now >= kill:
		r.group.signal(unix.SIGKILL)
	}
	if r.link == nil {
		r.replaceKeeper(nil)
	} else if r.link.hung(now) {
		r.replaceKeeper(errors.New("it does not answer"))
	}
}

// lossCause is why the lease was lost.
func (r *run) lossCause() error {
	if cause := context.Cause(r.o.Lease.Context()); cause != nil {
		return cause
	}
	return ErrNotRenewed
}

func (r *run) lost(cause error, why string) {
	if r.leaseLost {
		return
	}
	r.leaseLost = true
	if r.o.OnLost == Ignore {
		r.err = cause
		r.o.Logf("%s: %v; the command runs on without it", why, cause)
		return
	}
	r.stop(Lost, cause, why)
}

// stop tells the group to end; KILL follows when due says so. Only the first
// reason counts.
//
// The keeper hears it first and confirms it: else both of us might send TERM,
// and to many programs a second TERM means "at once". If it turns out that the
// keeper had to act already, then zamok was stopped, and that is the reason.
func (r *run) stop(end End, err error, why string) {
	if r.stopAt != 0 {
		return
	}
	r.stopAt = bootNow()
	r.tellKeeper()
	if r.link != nil {
		// A keeper that is gone, or stopped, is dealt with later; TERM must not wait
		// for it until KILL is due.
		_, kill := r.due()
		_ = r.link.await(noteOK, min(100*time.Millisecond, max((kill-bootNow())/2, time.Millisecond)))
		if r.link.acted {
			r.actedFor()
			return
		}
	}
	switch {
	case r.exited:
		r.o.Logf("%s: stopping them", why)
	case end == Lost: // the cause is told when the command has ended
		r.o.Logf("%s; stopping the command", why)
	case err != nil:
		r.o.Logf("%s: %v; stopping the command", why, err)
	}
	if !r.exited {
		r.end, r.err = end, err
	}
	r.group.terminate()
}

// actedFor is called when the keeper has told the command to end.
func (r *run) actedFor() {
	if r.muted {
		return
	}
	r.muted = true
	if r.stopAt == 0 {
		r.stopAt = bootNow()
	}
	if r.end == Exited {
		r.end, r.err, r.leaseLost = Lost, r.lossCause(), true
		r.o.Logf("stopped, or starved, for so long that the lease was not renewed: the command was told to end")
	}
}

// heard deals with a word from the keeper, or with its death.
func (r *run) heard(n note, alive bool) {
	if !alive {
		r.replaceKeeper(errors.New("it died"))
		return
	}
	r.link.heard(n)
	switch n.Kind {
	case noteOK:
		r.failures = 0
	case noteMute:
		r.actedFor()
	}
}

func (r *run) notes() <-chan note {
	if r.link == nil {
		return nil
	}
	return r.link.notes
}

func (r *run) keeperPID() int {
	if r.link == nil {
		return 0
	}
	return r.link.pid
}

// replaceKeeper starts another keeper, which learns all from the next order.
// zamok is alive, so the command is not unguarded in between. When three do not
// come up in a row, the machine is in a state in which the promise cannot be
// kept, and the command is stopped while zamok still can.
func (r *run) replaceKeeper(why error) {
	const tries = 3
	if r.link != nil {
		if r.link.acted {
			r.actedFor()
		}
		r.link.bury(false)
		r.link = nil
	}
	if r.failures < tries {
		r.failures++
		if why != nil {
			r.o.Logf("the keeper process is gone (%v): starting another", why)
		}
		l, err := startKeeper()
		if err == nil {
			r.link, r.told = l, order{}
			r.tellKeeper()
			return
		}
		r.noKeeper = err
	}
	if r.failures >= tries {
		r.stop(Unguarded, cmp.Or(r.noKeeper, errNoKeeper), "no keeper process can be started")
	}
}
