package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver/memory"
)

// runFlags are the flags of zamok run.
type runFlags struct {
	server    serverFlags
	try       bool
	wait      duration
	ttl       duration
	minHold   duration
	maxRun    duration
	killAfter duration
	conflict  int
	onLost    string
	reason    string
	quiet     bool

	name    string
	argv    []string
	limited bool // -w was given
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Waits for the lock NAME, runs COMMAND, releases the lock. COMMAND is started
without a shell, keeps stdin, stdout and stderr, and finds ZAMOK_NAME, ZAMOK_FENCE
and ZAMOK_TOKEN in its environment.

When the lock is lost, COMMAND and all processes of its group get SIGTERM, and
SIGKILL after --kill-after, before another can have the lock. That holds also
when zamok is killed or stopped: a second process sees to it.`,
		Example: `  zamok run nightly -- ./report.sh
  zamok run -n -E 0 --hold-min 30s cron-cleanup -- ./cleanup.sh
  zamok run -w 10m --max-run 1h deploy -- make deploy`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return a.runLocked(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&f.try, "try", "n", false, "do not wait: exit with 75 when another holds the lock")
	flags.VarP(&f.wait, "wait", "w", "wait at most this `TIME`, then exit with 75; 0 is -n\n(default: as long as it takes)")
	flags.IntVarP(&f.conflict, "conflict-exit-code", "E", exit.NotObtained, "exit code `N` when the lock was not obtained; 0 also keeps silent\nabout it")
	f.ttl = duration(15 * time.Second)
	flags.Var(&f.ttl, "ttl", "`TIME` after which the lock of a crashed machine is free again;\na lock in use is renewed and can be held for longer")
	flags.Var(&f.minHold, "hold-min", "keep the name taken at least this `TIME`, also when COMMAND is done\nsooner: for cron on hosts whose clocks differ")
	flags.Var(&f.maxRun, "max-run", "stop COMMAND after this `TIME`, exit with 124 (default: never)")
	flags.VarP(&f.killAfter, "kill-after", "k", "`TIME` from SIGTERM to SIGKILL; at most a third of --ttl\n(default: a fifth of --ttl)")
	flags.StringVar(&f.onLost, "on-lost", "terminate", "terminate or ignore (`WHAT`): COMMAND, when the lock is lost")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for those who wait")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	f.server.add(flags)
	flags.Lookup("wait").DefValue = "" // said in the text
	for _, zero := range []string{"hold-min", "max-run", "kill-after"} {
		flags.Lookup(zero).DefValue = ""
	}
	_ = cmd.RegisterFlagCompletionFunc("on-lost", cobra.FixedCompletions([]string{"terminate", "ignore"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const runForm = "write: zamok run [flags] NAME -- COMMAND [ARG...]"

// check takes the arguments and flags together. What is wrong is said before
// anything is sent, so that a mistake never stands in a queue.
func (f *runFlags) check(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 1:
		return usage(fmt.Sprintf("write: zamok run %s -- %s ...", args[0], args[1]), "-- is missing before the command")
	case dash < 0 && len(args) == 1:
		return usage(runForm, "no command given")
	case len(args) == 0 || dash == 0:
		return usage(runForm, "no name of a lock given")
	case dash > 1:
		return usage(runForm, "one name is expected before --, not %d: %q", dash, args[:dash])
	case len(args) == dash:
		return usage(runForm, "no command given after --")
	}
	f.name, f.argv = args[0], args[1:]
	f.limited = cmd.Flags().Changed("wait")
	if !cmd.Flags().Changed("kill-after") {
		f.killAfter = f.ttl / 5
	}
	if err := f.checkFlags(); err != nil {
		return err
	}
	if err := f.checkName(); err != nil {
		return err
	}
	_, err := child.Look(f.argv[0], os.Environ())
	return err
}

// checkName has the library look at name and prefix, on a server in memory.
func (f *runFlags) checkName() error {
	client, err := zamok.New(memory.New(), &zamok.Config{Prefix: f.server.prefix})
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Mutex(f.name, nil).TryDo(context.Background(), func(context.Context) error { return nil })
}

func (f *runFlags) checkFlags() error {
	const shortest, longest = duration(100 * time.Millisecond), duration(24 * time.Hour)
	switch {
	case f.try && f.limited:
		return usage("-n does not wait, -w says how long to wait: leave out one", "--try and --wait were both given")
	case f.conflict < 0 || f.conflict > 255:
		return usage("an exit code is 0 to 255", "--conflict-exit-code is %d", f.conflict)
	case f.ttl < shortest || f.ttl > longest:
		return usage("15s suits most; it is what a crash costs the next in line, not the longest run", "--ttl is %v; it must be 100ms to 24h", &f.ttl)
	case f.killAfter > f.ttl/3:
		return usage("the command must be dead before the lock can end: raise --ttl or lower -k", "--kill-after is %v, more than a third of --ttl, %v", &f.killAfter, &f.ttl)
	case f.minHold > longest:
		return usage("it is for clocks that differ by seconds", "--hold-min is %v; at most 24h", &f.minHold)
	case f.onLost != "terminate" && f.onLost != "ignore":
		return usage("write --on-lost=terminate or --on-lost=ignore", "--on-lost is %q", f.onLost)
	case len(f.reason) > 256:
		return usage("shorten it", "--reason has %d bytes; at most 256 are allowed", len(f.reason))
	}
	if f.limited && f.wait == 0 {
		f.try = true
	}
	return nil
}
