package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// oneLock is what names one lock or semaphore on the command line.
type oneLock struct {
	name string
	key  string
}

// semaphoreMark is what the names of semaphores begin with where locks are named,
// too: in lists, and in the arguments of what looks at both.
const semaphoreMark = "semaphore:"

func (o *oneLock) read(ctx context.Context, in *inspect.Inspector) (inspect.Lock, error) {
	if o.key == "" {
		if name, ok := strings.CutPrefix(o.name, semaphoreMark); ok {
			return in.ShowSemaphore(ctx, name)
		}
		return in.Show(ctx, o.name)
	}
	l, err := in.ShowKey(ctx, o.key)
	if o.name != "" && l.Kind != inspect.KindSemaphore {
		l.Name = o.name
	}
	return l, err
}

// args takes the name; with --key there need not be one.
func (o *oneLock) args(cmd *cobra.Command, args []string) error {
	form := "write: zamok " + cmd.Use
	if cmd.Flags().Changed("key") && o.key == "" {
		return usage("it is the exact key of a lock with MutexConfig.Key", "--key is empty")
	}
	switch {
	case len(args) > 1, len(args) == 0 && o.key == "":
		return usage(form, "one name of a lock is expected, not %d", len(args))
	case len(args) == 1:
		o.name = args[0]
	}
	return nil
}

func (a *app) showCommand() *cobra.Command {
	var server serverFlags
	var lock oneLock
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Show who holds a lock and who waits for it",
		Long: `Shows one lock: who holds it, since when and why, what is left and whether it is
renewed in time, its fence, and those who wait, in order. If holders wait for each
other, it shows the circle. Of a lock that readers have, and of a semaphore
(semaphore:NAME), it shows all holders.

With --quorum it asks all members, and shows whose vote each has given to whom, and
what they say together; the exit code is 69 when that depends on some that do not
answer.

The exit code is 0 if somebody holds it and 1 if nobody does.`,
		Example:               "  zamok show nightly\n  zamok show semaphore:api\n  zamok show --json nightly | jq .waiting\n  zamok show --key old:job:lock",
		Args:                  lock.args,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if server.quorum {
				return a.lookingAtAll(cmd.Context(), &server, func(ctx context.Context, q *quorum) error {
					return a.showQuorum(ctx, q, &lock, asJSON)
				})
			}
			return a.looking(cmd.Context(), &server, func(ctx context.Context, in *inspect.Inspector) error {
				return a.show(ctx, in, &lock, asJSON)
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&lock.key, "key", "", "the lock with this exact `KEY` (MutexConfig.Key); NAME may be left out")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: see docs/cli.md")
	server.add(cmd.Flags())
	return cmd
}

// looking connects and looks.
func (a *app) looking(ctx context.Context, f *serverFlags, look func(context.Context, *inspect.Inspector) error) error {
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, f)
	if err != nil {
		return err
	}
	defer srv.close()
	in, err := inspect.New(srv.driver, f.prefix)
	if err != nil {
		return unprefixed(err)
	}
	a.tellQuarantine(signals.waiting, in)
	return unprefixed(look(signals.waiting, in))
}

func (a *app) show(ctx context.Context, in *inspect.Inspector, lock *oneLock, asJSON bool) error {
	l, err := lock.read(ctx, in)
	if err != nil {
		return err
	}
	if !l.Held {
		a.code = exit.Failed
	}
	circles := a.circlesOf(ctx, in, l)
	if asJSON {
		j := jsonOf(l)
		j.Quarantine = quarantine(ctx, in)
		for _, d := range circles {
			j.Deadlocks = append(j.Deadlocks, jsonDeadlockOf(d))
		}
		return a.json(j)
	}
	return a.print(func(w io.Writer) {
		printLock(w, a.pageWidth(), l)
		for _, d := range circles {
			fmt.Fprintln(w)
			printDeadlock(w, d)
		}
	})
}

// circlesOf finds the deadlocks in which the lock takes part. That costs a look
// at all locks, so it is done only when the lock can be part of one: somebody
// holds it, and somebody waits.
func (a *app) circlesOf(ctx context.Context, in *inspect.Inspector, l inspect.Lock) []inspect.Deadlock {
	if l.Waiting == 0 || !slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Client != "" && !h.Resting }) {
		return nil
	}
	r, err := in.Check(ctx, nil)
	if err != nil {
		a.talk.say("warning: could not look for deadlocks: %s", plain(err))
		return nil
	}
	var circles []inspect.Deadlock
	for _, p := range r.Problems {
		if p.Deadlock != nil && slices.ContainsFunc(p.Deadlock.Members, func(m inspect.DeadlockMember) bool { return m.Key == l.Key }) {
			circles = append(circles, *p.Deadlock)
		}
	}
	return circles
}
