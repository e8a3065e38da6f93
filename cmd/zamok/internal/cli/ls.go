package cli

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok/inspect"
)

// lsFlags are the flags of zamok ls.
type lsFlags struct {
	server  serverFlags
	pattern string

	held     duration
	waiting  bool
	host     string
	sort     string
	scan     bool
	watching bool // --watch was given
	every    duration
	asJSON   bool
}

func (a *app) lsCommand() *cobra.Command {
	f := &lsFlags{}
	cmd := &cobra.Command{
		Use:   "ls [flags] [PATTERN]",
		Short: "List locks",
		Long: `Lists the locks whose names match PATTERN, all without one. In it * stands for any
text, ? for one character, [a-z] for one of a range. Semaphores are listed as
semaphore:NAME.

It asks the processes that use locks, and not every key of the server. Locks of
other programs are found with --scan.`,
		Example:               "  zamok ls\n  zamok ls 'deploy-*'\n  zamok ls 'semaphore:*'\n  zamok ls --waiting --sort waiters --watch\n  zamok ls --held-longer 1h --json | jq -r '.[].name'",
		Args:                  f.args,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.looking(cmd.Context(), &f.server, func(ctx context.Context, in *inspect.Inspector) error {
				if f.watching {
					return a.watch(ctx, f, in)
				}
				return a.ls(ctx, f, in)
			})
		},
	}
	f.add(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(sorts, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

var sorts = []string{"name", "age", "waiters"}

func (f *lsFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(&f.held, "held-longer", "only those that are held for more than this `TIME`; since when a\nforeign program holds one is not known")
	flags.BoolVar(&f.waiting, "waiting", false, "only those for which somebody waits")
	flags.StringVar(&f.host, "host", "", "only those that are held from this `HOST`; web-3 is also\nweb-3.example.com")
	flags.StringVar(&f.sort, "sort", sorts[0], "sort by `WHAT`: name, age (oldest first) or waiters (most\nfirst)")
	flags.BoolVar(&f.scan, "scan", false, "look through all keys of the database: finds locks of other\nprograms, too")
	f.every = duration(2 * time.Second)
	flags.Var(&f.every, "watch", "again every `TIME`, in place at a terminal, where q ends it;\nwritten --watch=5, and without a time 2s")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: see docs/cli.md")
	f.server.add(flags)
	flags.Lookup("held-longer").DefValue = ""
	flags.Lookup("watch").DefValue = ""
	flags.Lookup("watch").NoOptDefVal = "2s"
}

func (f *lsFlags) args(cmd *cobra.Command, args []string) error {
	f.watching = cmd.Flags().Changed("watch")
	if len(args) > 1 {
		return usage("put the pattern in quotes, so that the shell leaves it alone", "one pattern is expected, not %d", len(args))
	}
	if len(args) == 1 {
		f.pattern = args[0]
	}
	if _, err := parseDuration(f.pattern); err == nil && f.watching {
		return usage("write --watch="+f.pattern+"; a lock of that name is found by the pattern ["+f.pattern[:1]+"]"+f.pattern[1:], "%q is the pattern, not the time of --watch", f.pattern)
	}
	return nil
}

func (f *lsFlags) check() error {
	const shortest, longest = duration(100 * time.Millisecond), duration(24 * time.Hour)
	switch {
	case !slices.Contains(sorts, f.sort):
		return usage("write --sort=name, --sort=age or --sort=waiters", "--sort is %q", f.sort)
	case f.watching && (f.every < shortest || f.every > longest):
		return usage("2s is good to read along", "--watch is %v; it must be 100ms to 24h", &f.every)
	}
	return nil
}

// some says whether some locks may be left out of the list on purpose.
func (f *lsFlags) some() bool {
	return f.pattern != "" || f.held > 0 || f.waiting || f.host != ""
}

func (f *lsFlags) wants(l inspect.Lock) bool {
	switch {
	case f.held > 0 && (!l.Held || l.First().Since <= time.Duration(f.held)):
		return false
	case f.waiting && l.Waiting == 0:
		return false
	case f.host != "":
		return slices.ContainsFunc(l.Holders, func(h inspect.Holder) bool { return h.Host == f.host || strings.HasPrefix(h.Host, f.host+".") })
	}
	return true
}

func (f *lsFlags) look(ctx context.Context, in *inspect.Inspector) (*inspect.View, error) {
	if f.scan {
		return in.Scan(ctx)
	}
	return in.Look(ctx)
}

// locks are those that are wanted, in the order wanted. By name they come as they
// are read; another order must have them all first.
func (f *lsFlags) locks(ctx context.Context, view *inspect.View) iter.Seq2[inspect.Lock, error] {
	return func(yield func(inspect.Lock, error) bool) {
		var all []inspect.Lock
		for l, err := range view.Locks(ctx, f.pattern) {
			switch {
			case err != nil:
				yield(l, err)
				return
			case !f.wants(l):
			case f.sort != sorts[0]:
				all = append(all, l)
			case !yield(l, nil):
				return
			}
		}
		f.arrange(all)
		for _, l := range all {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// arrange sorts what comes in the order of names; equal ones stay so.
func (f *lsFlags) arrange(all []inspect.Lock) {
	slices.SortStableFunc(all, func(x, y inspect.Lock) int {
		if f.sort == "waiters" {
			return cmp.Compare(y.Waiting, x.Waiting)
		}
		return cmp.Compare(y.First().Since, x.First().Since) // of which it is not known comes last
	})
}

func (a *app) ls(ctx context.Context, f *lsFlags, in *inspect.Inspector) error {
	view, err := f.look(ctx, in)
	if err != nil {
		return err
	}
	var found int
	if f.asJSON {
		found, err = a.listJSON(f.locks(ctx, view))
	} else {
		found, err = a.listTable(f.locks(ctx, view))
	}
	if err != nil {
		return err
	}
	for _, note := range f.notes(view, found) {
		a.talk.say("%s", note)
	}
	return nil
}

// notes are what a reader of the list should know.
func (f *lsFlags) notes(view *inspect.View, found int) []string {
	var notes []string
	switch {
	case found == 0 && f.some():
		notes = append(notes, "no locks match")
	case found == 0:
		notes = append(notes, "no locks")
	}
	switch {
	case f.scan:
	case view.Unnamed > 0:
		notes = append(notes, counted(view.Unnamed, "lease")+" and waits are missing here, since their processes have more than they can name; --scan finds them")
	case found == 0:
		notes = append(notes, "locks of other programs are found with --scan")
	}
	return notes
}
