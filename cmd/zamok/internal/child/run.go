//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Run starts the command and returns when it and its whole group have ended.
// While it runs it forwards INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and
// TSTP to the group, and the command's end decides the result.
//
// ctx is for programs, not for signals: when it ends the command gets TERM, and
// KILL after KillAfter. A ctx made by signal.NotifyContext would turn one Ctrl-C
// into INT, TERM and KILL.
//
// One Run at a time in a process: it owns the signals and the terminal.
func Run(ctx context.Context, o Options) Result {
	o = o.withDefaults()
	if len(o.Argv) == 0 || o.Lease == nil {
		return failed(errors.New("child: Options.Argv and Options.Lease are required"))
	}
	path, err := Look(o.Argv[0], o.Env)
	if err != nil {
		return failed(err)
	}
	alarm, err := newAlarm()
	if err != nil {
		return failed(err)
	}
	defer alarm.close()
	r := &run{o: o, alarm: alarm, watch: watch{lease: o.Lease}, sig: listen(o.Ignored), tty: openTerminal(o)}
	defer r.sig.stop()
	if err := r.start(path); err != nil {
		return failed(err)
	}
	r.loop(ctx)
	return r.finish()
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Ignored == nil {
		o.Ignored = IgnoredAtStart()
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	return o
}

// failed is the result of a command that was not started.
func failed(err error) Result {
	r := Result{Code: 70, End: NotStarted, Err: err}
	var s *StartError
	var lost *lostEarlyError
	switch {
	case errors.As(err, &s):
		r.Code = s.Code
	case errors.As(err, &lost):
		r.End, r.Err, r.LeaseLost = Lost, lost.cause, true
	}
	return r
}

// lostEarlyError: the lease was lost before the command was started.
type lostEarlyError struct{ cause error }

func (e *lostEarlyError) Error() string { return e.cause.Error() }

// run is a run in progress. Its fields belong to the goroutine of Run.
type run struct {
	o      Options
	path   string // of the command
	alarm  *alarm
	watch  watch
	sig    *signals
	tty    *terminal
	group  *group
	leader *leader
	link   *link // nil while there is no keeper
	began  time.Time
	execed <-chan error

	told      order         // what the keeper knows
	failures  int           // keepers in a row that did not come up
	noKeeper  error         // why the last one could not be started
	muted     bool          // a keeper had to act for us
	exited    bool          // the leader has
	stopAt    time.Duration // when the group was told to end, 0 if it was not
	end       End
	err       error
	leaseLost bool
	forwarded syscall.Signal
	tstp      bool // TSTP was forwarded: if the command stops, so do we
	hadTTY    bool // the command had the terminal when it was stopped, or at its end
}

// start brings up the keeper, then the command, in an order that leaves no
// moment in which the command runs and the keeper does not know it. If zamok is
// killed before the go, the trampoline reads an end of file and exits.
func (r *run) start(path string) (err error) {
	r.path = path
	r.link, err = startKeeper()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && r.link != nil {
			r.link.dismiss()
		}
	}()
	r.o.step("keeper started")
	const patience = 10 * time.Second // a loaded machine; nothing is at stake yet
	if err := r.link.await(noteReady, patience); err != nil {
		return err
	}
	r.o.step("keeper ready")
	mark, env, err := marked(r.o.Env)
	if err != nil {
		return err
	}
	s, err := forkWaiting(r.o, path, env)
	if err != nil {
		return startError(r.o.Argv[0], path, err)
	}
	r.leader = &leader{pid: s.pid}
	session, _ := unix.Getsid(0)
	r.group = newGroup(s.pid, session, mark)
	r.o.step("forked")
	r.tellKeeper()
	if r.link == nil {
		err = cmp.Or(r.noKeeper, errNoKeeper)
	} else if err = r.link.await(noteOK, patience); err == nil {
		r.o.step("confirmed")
		if cause := context.Cause(r.o.Lease.Context()); cause != nil {
			err = &lostEarlyError{cause}
		}
	}
	if err != nil {
		s.abandon()
		r.leader.reap()
		return err
	}
	if r.tty != nil && r.tty.eager {
		r.tty.give(r.group.id)
	}
	r.began = time.Now()
	r.execed = s.release()
	r.o.step("go")
	return nil
}

// marked adds a new mark to the environment, behind those of outer runs.
func marked(env []string) (mark string, with []string, err error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", nil, fmt.Errorf("draw a mark: %w", err)
	}
	mark = hex.EncodeToString(b[:])
	with = make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, markVar+"=") {
			with = append(with, kv)
		}
	}
	return mark, append(with, markVar+"="+strings.TrimSpace(lookupEnv(env, markVar)+" "+mark)), nil
}

// finish is called when the group has ended.
func (r *run) finish() Result {
	if r.link != nil {
		r.link.dismiss() // before the leader is reaped: until then its number is ours
		if r.link.acted {
			r.actedFor()
		}
	}
	r.leader.reap()
	res := Result{
		End: r.end, Err: r.err, LeaseLost: r.leaseLost, WhileStopped: r.muted,
		Forwarded: r.forwarded, Ran: time.Since(r.began),
	}
	switch status := r.leader.status; {
	case status.Signaled():
		res.Signal = status.Signal()
		res.Code = 128 + int(res.Signal)
		r.tty.reset()
	default:
		res.Code = status.ExitStatus()
	}
	if err := <-r.execed; err != nil {
		return failed(startError(r.o.Argv[0], r.path, err))
	}
	if res.End == Exited && r.hadTTY && r.forwarded == 0 && (res.Signal == unix.SIGINT || res.Signal == unix.SIGQUIT) {
		res.raise = res.Signal
	}
	return res
}
