package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// runLocked is zamok run: connect, take the lock, run the command, release.
func (a *app) runLocked(ctx context.Context, f *runFlags) error {
	return a.take(ctx, &f.claim, f.mutex(), func(h *hold) error {
		if err := h.signals.handOver(); err != nil {
			return f.notObtained(err)
		}
		result := a.runUnder(h.signals.running, f, h.all, h.told)
		return f.finish(a, h.all, result)
	})
}

func (f *runFlags) mutex() *zamok.MutexConfig {
	// The command has -k to end after SIGTERM, and the library's context is the first to tell of a loss: so it ends
	// that long before the lease does, and a little more, but never more than half of the ttl before.
	grace := min(time.Duration(f.killAfter)*5/4+10*time.Millisecond, time.Duration(f.ttl)/2)
	return &zamok.MutexConfig{
		TTL:     time.Duration(f.ttl),
		MinHold: time.Duration(f.minHold),
		Grace:   grace,
		Reason:  f.reason,
	}
}

// runUnder runs the command under the lease, with more variables than every
// command is given.
//
// ctx is not the lease's: it ends when a signal came that the command never saw.
func (a *app) runUnder(ctx context.Context, f *runFlags, lease held, told *progress, more ...string) child.Result {
	told.holding(lease)
	return child.Run(ctx, child.Options{
		Argv: f.argv, Env: with(environment(f.leaseOf(lease)), more...), Lease: lease,
		KillAfter: time.Duration(f.killAfter), MaxRun: time.Duration(f.maxRun), OnLost: onLost(f.onLost),
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Ignored: a.ignored,
		Logf: func(format string, args ...any) { // the library's own prefix is of no use here
			a.talk.say("%s", strings.ReplaceAll(fmt.Sprintf(format, args...), "zamok: ", ""))
		},
	})
}

func onLost(flag string) child.OnLost {
	if flag == "ignore" {
		return child.Ignore
	}
	return child.Terminate
}

// environment is the command's: ours, with what it can know of its lock. The
// URL of --redis is not in it; ZAMOK_REDIS and REDIS_URL stay as they are, since
// they are the user's and the command may itself want to ask zamok.
func environment(lease *zamok.Lease) []string {
	return with(os.Environ(),
		"ZAMOK_NAME="+lease.Name(),
		"ZAMOK_FENCE="+strconv.FormatInt(lease.Fence(), 10),
		"ZAMOK_TOKEN="+lease.Token())
}

// with sets variables. Those of the same names, of an outer zamok, are taken out:
// of two, most programs see the first.
func with(env []string, more ...string) []string {
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	}
	return append(env, more...)
}

// finish releases the lock and finds the exit code. All of the command's
// processes have ended.
func (f *runFlags) finish(a *app, lease held, r child.Result) error {
	a.code, a.raise = r.Code, r.Raise
	if r.End == child.Exited && r.Signal == syscall.SIGINT && r.Forwarded == syscall.SIGINT && (isTerminal(a.stdin) || isTerminal(a.stderr)) {
		// Ctrl-C, and the terminal told our caller too: a shell ends its loop only
		// when it sees that we died of it.
		a.raise = func() { dieOf(syscall.SIGINT) }
	}
	err := lease.Release(context.Background()) // bounded by the library
	switch {
	case r.End == child.NotStarted:
		var start *child.StartError
		if !errors.As(r.Err, &start) {
			return &failure{code: exit.Bug, err: fmt.Errorf("the command was not started: %w", r.Err), hint: "is the machine out of processes, files (ulimit -u, -n) or memory?"}
		}
		return r.Err
	case r.End == child.Cancelled:
		return r.Err
	case r.End == child.Lost:
		a.code = exit.Lost
		done := "the command was stopped"
		if r.Ran == 0 {
			done = "the command was not started"
		}
		a.talk.fail("lost %s: %v; %s", f.thing(r.Err), reason(r.Err), done)
		return nil
	case r.End == child.MaxRun:
		a.code = exit.MaxRun
		a.talk.fail("the command ran longer than --max-run, %v, and was stopped", &f.maxRun)
		return nil
	case r.End == child.Unguarded:
		return &failure{code: exit.Bug, err: fmt.Errorf("the command was stopped, since nobody could watch over it: %w", r.Err), hint: "is the machine out of processes or memory?"}
	case r.LeaseLost:
		a.talk.fail("lost %s while the command ran: %v; another may have run at the same time", f.thing(r.Err), reason(r.Err))
	case errors.Is(err, zamok.ErrLost):
		a.talk.fail("%s was gone when the command had ended: %v; another may have run at the same time", f.thing(err), reason(err))
	case err != nil && !errors.Is(err, zamok.ErrReleased):
		a.notReleased(&f.claim, err, time.Duration(f.ttl))
	}
	return nil
}

// reason words a loss without repeating the lock's name.
func reason(err error) string {
	var lost *zamok.LostError
	if !errors.As(err, &lost) {
		if errors.Is(err, child.ErrNotRenewed) {
			return string(zamok.LostExpired)
		}
		return fmt.Sprint(err)
	}
	text := string(lost.Reason)
	if lost.Operator != "" {
		text = "broken by " + lost.Operator
	}
	if lost.Why != "" {
		text += ": " + lost.Why
	}
	if lost.By != (zamok.Holder{}) {
		text += ", now held by " + lost.By.String()
	}
	if lost.Err != nil {
		text += ": " + strip(lost.Err).Error()
	}
	return text
}
