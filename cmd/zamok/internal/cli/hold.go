package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// runLocked is zamok run: connect, take the lock, run the command, release.
func (a *app) runLocked(ctx context.Context, f *runFlags) error {
	surviveClosedPipe()
	if f.quiet {
		a.talk.hush()
	}
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, &f.server)
	if err != nil {
		return err
	}
	defer srv.close()
	told := newProgress(a.talk, f.name)
	told.who = func() (service, reason string) { return holderOf(signals.waiting, srv, f) }
	defer told.stop()
	client, err := zamok.New(srv.driver, &zamok.Config{
		Prefix: f.server.prefix,
		GiveUp: time.Duration(f.server.timeout),
		Name:   f.service(),
		Logger: slog.New(slog.DiscardHandler), // progress says what a user should know
		Trace:  told.trace(),
	})
	if err != nil {
		return err
	}
	lease, err := f.obtain(signals.waiting, client, told)
	if err == nil {
		err = signals.handOver()
	}
	if err != nil {
		_ = client.Close() // waits until the lock or the place in the queue is given up
		return f.notObtained(err)
	}
	result := a.runChild(signals.running, f, lease, told)
	err = f.finish(a, lease, result)
	if closeErr := client.Close(); closeErr != nil && err == nil {
		a.talk.fail("lock %q: not released: %v; it ends by itself within %v", f.name, strip(closeErr), &f.ttl)
	}
	return err
}

// holderOf asks for what the holder says of itself, but not for long.
func holderOf(ctx context.Context, srv *server, f *runFlags) (service, reason string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	in, err := inspect.New(srv.driver, f.server.prefix)
	if err != nil {
		return "", ""
	}
	l, err := in.Show(ctx, f.name)
	if err != nil {
		return "", ""
	}
	return l.Service, l.Reason
}

// service is what others are told that holds the lock: the command.
func (f *runFlags) service() string {
	name := filepath.Base(f.argv[0])
	return name[:min(len(name), 64)]
}

// obtain takes the lock and sees to it that the whole ttl is granted. A lease
// that was handed over has 2 s at first; one that is lost before the command
// started did no harm, so the wait begins again.
func (f *runFlags) obtain(ctx context.Context, client *zamok.Client, told *progress) (*zamok.Lease, error) {
	began := time.Now()
	for {
		config := f.mutex()
		if f.limited && !f.try {
			config.Wait = max(time.Duration(f.wait)-time.Since(began), time.Millisecond)
		}
		m := client.Mutex(f.name, config)
		told.begin()
		acquire := m.Lock
		if f.try {
			acquire = m.TryLock
		}
		lease, err := acquire(ctx)
		told.end(err)
		if err != nil {
			return nil, err
		}
		ttl := time.Duration(f.ttl)
		if time.Until(lease.Deadline()) >= ttl-ttl/10 {
			return lease, nil
		}
		if err = extend(ctx, lease, ttl); err == nil {
			return lease, nil
		}
		_ = lease.Release(ctx)
		if !errors.Is(err, zamok.ErrLost) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// extend tries until the lease that was passed on is over: a connection that
// breaks now must not cost the place in line.
func extend(ctx context.Context, lease *zamok.Lease, ttl time.Duration) error {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := lease.Extend(ctx, ttl)
		if !errors.Is(err, zamok.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		select {
		case <-pause.C:
		case <-lease.Context().Done():
		}
	}
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

// notObtained explains why the command was not run.
func (f *runFlags) notObtained(err error) error {
	var held *zamok.HeldError
	var stopped *interrupted
	switch {
	case errors.As(err, &stopped):
		return &failure{code: stopped.code(), err: fmt.Errorf("%q: stopped waiting: %w", f.name, stopped)}
	case errors.As(err, &held):
		what := fmt.Sprintf("%q is %s", f.name, held.Describe())
		hint := "without -n it waits its turn"
		if !f.try {
			what = fmt.Sprintf("%q: not obtained within %v: %s", f.name, &f.wait, held.Describe())
			hint = "`zamok show` tells who is in line"
		}
		return &failure{code: f.conflict, err: &worded{what, err}, hint: hint, silent: f.conflict == 0}
	}
	return err
}

// runChild runs the command under the lease.
//
// ctx is not the lease's: it ends when a signal came that the command never saw.
func (a *app) runChild(ctx context.Context, f *runFlags, lease *zamok.Lease, told *progress) child.Result {
	told.holding(lease)
	onLost := child.Terminate
	if f.onLost == "ignore" {
		onLost = child.Ignore
	}
	return child.Run(ctx, child.Options{
		Argv: f.argv, Env: environment(lease), Lease: lease,
		KillAfter: time.Duration(f.killAfter), MaxRun: time.Duration(f.maxRun), OnLost: onLost,
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Ignored: a.ignored, Logf: a.talk.say,
	})
}

// environment is the command's: ours, with what it can know of its lock. The
// URL of --redis is not in it; ZAMOK_REDIS and REDIS_URL stay as they are, since
// they are the user's and the command may itself want to ask zamok.
func environment(lease *zamok.Lease) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		for _, name := range []string{"ZAMOK_NAME=", "ZAMOK_FENCE=", "ZAMOK_TOKEN="} {
			if len(kv) >= len(name) && kv[:len(name)] == name {
				return true // of an outer zamok run
			}
		}
		return false
	})
	return append(env,
		"ZAMOK_NAME="+lease.Name(),
		"ZAMOK_FENCE="+strconv.FormatInt(lease.Fence(), 10),
		"ZAMOK_TOKEN="+lease.Token())
}

// finish releases the lock and finds the exit code. All of the command's
// processes have ended.
func (f *runFlags) finish(a *app, lease *zamok.Lease, r child.Result) error {
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
		a.talk.fail("lost the lock %q: %v; %s", f.name, reason(r.Err), done)
		return nil
	case r.End == child.MaxRun:
		a.code = exit.MaxRun
		a.talk.fail("the command ran longer than --max-run, %v, and was stopped", &f.maxRun)
		return nil
	case r.End == child.Unguarded:
		return &failure{code: exit.Bug, err: fmt.Errorf("the command was stopped, since nobody could watch over it: %w", r.Err), hint: "is the machine out of processes or memory?"}
	case r.LeaseLost:
		a.talk.fail("lost the lock %q while the command ran: %v; another may have run at the same time", f.name, reason(r.Err))
	case errors.Is(err, zamok.ErrLost):
		a.talk.fail("the lock %q was gone when the command had ended: %v; another may have run at the same time", f.name, reason(err))
	case err != nil && !errors.Is(err, zamok.ErrReleased):
		a.talk.fail("lock %q: not released: %v; it ends by itself within %v", f.name, strip(err), &f.ttl)
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
	if lost.By != (zamok.Holder{}) {
		text += ", now held by " + lost.By.String()
	}
	if lost.Why != "" {
		text += " (" + lost.Why + ")"
	}
	if lost.Err != nil {
		text += ": " + strip(lost.Err).Error()
	}
	return text
}
