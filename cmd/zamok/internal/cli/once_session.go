package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
)

// session is a connection for what takes its lock through package once, and not
// through claim.obtain.
type session struct {
	client  *zamok.Client
	told    *progress
	signals *signalWatch
}

// connected connects and calls use. What use has not given back when it returns is
// given back then.
func (a *app) connected(ctx context.Context, c *claim, use func(*session) error) error {
	surviveClosedPipe()
	if c.quiet {
		a.talk.hush()
	}
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, &c.server)
	if err != nil {
		return err
	}
	defer srv.close()
	told := newProgress(a.talk, c.name)
	told.who = func() (service, reason string) { return holderOf(signals.waiting, srv, c) }
	defer told.stop()
	client, err := c.client(srv, told.trace())
	if err != nil {
		return err
	}
	err = use(&session{client, told, signals})
	if closeErr := client.Close(); closeErr != nil && err == nil {
		a.notReleased(c.name, closeErr, time.Duration(c.ttl))
	}
	return err
}

// runUnder runs the command under a lease of package once, with more variables
// than zamok run gives it. As there, ctx ends when a signal came that the command
// never saw.
func (a *app) runUnder(ctx context.Context, f *runFlags, lease *zamok.Lease, told *progress, more ...string) child.Result {
	told.holding(lease)
	return child.Run(ctx, child.Options{
		Argv: f.argv, Env: with(environment(lease), more...), Lease: lease,
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

// with sets variables. Those of the same names, of an outer zamok, are taken out:
// of two, most programs see the first.
func with(env []string, more ...string) []string {
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	}
	return append(env, more...)
}
