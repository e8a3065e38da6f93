package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// oneLock is what names one lock on the command line.
type oneLock struct {
	name string
	key  string
}

func (o *oneLock) read(ctx context.Context, in *inspect.Inspector) (inspect.Lock, error) {
	if o.key == "" {
		return in.Show(ctx, o.name)
	}
	l, err := in.ShowKey(ctx, o.key)
	if o.name != "" {
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
other, it shows the circle.

The exit code is 0 if it is held and 1 if it is free.`,
		Example:               "  zamok show nightly\n  zamok show --json nightly | jq .waiting\n  zamok show --key old:job:lock",
		Args:                  lock.args,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	if !l.Held || l.Waiting == 0 || l.Holder.Foreign || l.Holder.Resting {
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

// facts prints what is known, one a line.
type facts struct{ w io.Writer }

func (f facts) line(what, format string, args ...any) {
	fmt.Fprintf(f.w, "%-8s  %s\n", what, fmt.Sprintf(format, args...))
}

// known prints text of others, if there is any.
func (f facts) known(what, text string) {
	if text != "" {
		f.line(what, "%s", visible(text))
	}
}

func printLock(w io.Writer, page int, l inspect.Lock) {
	f := facts{w}
	f.line("lock", "%s", visible(l.Name))
	if l.Key != "" && l.Name != l.Key && !isNamedKey(l) {
		f.line("key", "%s", visible(l.Key))
	}
	f.holder(l)
	f.known("reason", l.Reason)
	if l.Since > 0 {
		f.line("since", "%s ago", ago(l.Since))
	}
	f.end(l)
	if l.Broken != nil {
		f.line("broken", "%s asked the holder to stop: %s", visible(l.Broken.By), visible(l.Broken.Why))
	}
	if l.Fence > 0 {
		f.line("fence", "%d", l.Fence)
	}
	f.line("waiting", "%d", l.Waiting)
	printWaiters(w, page, l)
}

// isNamedKey says whether the key is what zamok makes of the name, whatever the
// prefix: then it tells nothing new.
func isNamedKey(l inspect.Lock) bool {
	tail := "lock:" + l.Name
	return len(l.Key) >= len(tail) && l.Key[len(l.Key)-len(tail):] == tail
}

func (f facts) holder(l inspect.Lock) {
	switch {
	case !l.Held:
		f.line("state", "free")
		return
	case l.Holder.Resting:
		f.line("state", "at rest after its holder released it (--hold-min)")
		f.line("holder", "nobody; %s had it", holder(l))
		return
	}
	f.line("state", "held")
	f.line("holder", "%s", holder(l))
	f.known("command", l.Command)
	f.known("version", l.Version)
	switch {
	case l.Silent:
		f.line("process", "silent: it is gone, or cut off from the server")
	case l.Up > 0:
		f.line("process", "up %s", ago(l.Up))
	}
}

// end says when the lock ends and what is known of its renewals.
func (f facts) end(l inspect.Lock) {
	switch {
	case !l.Held:
		return
	case l.NoTTL:
		f.line("ends", "never by itself: the key has no TTL")
		return
	case l.Holder.Resting || l.Holder.Foreign || l.Broken != nil || l.Detached:
		f.line("ends", "in %s", ago(l.Left))
	default:
		f.line("ends", "in %s, unless it is renewed", ago(l.Left))
	}
	switch {
	case l.Holder.Resting || l.Holder.Foreign || l.Broken != nil:
	case l.Detached:
		f.line("renewals", "none: it was detached, for another process to go on with")
	case l.Late > 0:
		f.line("renewals", "late: the next one is overdue by %s", ago(l.Late))
	case l.TTL > 0:
		f.line("renewals", "on time, to %s", ago(l.TTL))
	}
}

func printWaiters(w io.Writer, page int, l inspect.Lock) {
	if len(l.Waiters) == 0 {
		return
	}
	rows := [][]string{{"PLACE", "WAITER", "WAITING", "TTL", "STATE"}}
	for _, q := range l.Waiters {
		state := "listens"
		switch {
		case q.Polls:
			state = "polls"
		case !q.Alive:
			state = "gone, will be passed over"
		}
		rows = append(rows, []string{strconv.Itoa(q.Place), serviceOn(q.Service, q.Holder), ago(q.Waited), ago(q.TTL), state})
	}
	fmt.Fprintln(w)
	table(w, page, rows, 1)
	if more := l.Waiting - len(l.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

func printDeadlock(w io.Writer, d inspect.Deadlock) {
	if d.Sure {
		fmt.Fprintln(w, "deadlock: these wait for each other")
	} else {
		fmt.Fprintln(w, "perhaps a deadlock: these wait for each other")
	}
	for _, line := range deadlockLines(d) {
		fmt.Fprintln(w, "  "+line)
	}
	fmt.Fprintln(w, "  it ends when one of them does: zamok break NAME --reason TEXT")
}

// deadlockLines says of each member for which one its holder waits.
func deadlockLines(d inspect.Deadlock) []string {
	var lines []string
	for n, m := range d.Members {
		next := d.Members[(n+1)%len(d.Members)]
		line := fmt.Sprintf("%s: held by %s, which has waited %s for %s", visible(m.Name), serviceOn(m.Service, m.Holder), ago(m.Waits.Waited), visible(next.Name))
		if !m.Sure {
			line += ", perhaps not under this lock"
		}
		lines = append(lines, line)
	}
	return lines
}

func who(h zamok.Holder) string { return visible(h.String()) }

// holder is who holds a lock, with the service that it says it is.
func holder(l inspect.Lock) string { return serviceOn(l.Service, l.Holder) }

func serviceOn(service string, h zamok.Holder) string {
	if service == "" {
		return who(h)
	}
	return visible(service) + " on " + who(h)
}
