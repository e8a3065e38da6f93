package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
)

// runFlags are the flags of zamok run.
type runFlags struct {
	claim
	minHold   duration
	maxRun    duration
	killAfter duration
	onLost    string
	tick      tickFlags

	argv []string
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Waits for the lock NAME, runs COMMAND, releases the lock. COMMAND is started
without a shell, keeps stdin, stdout and stderr, and finds ZAMOK_NAME, ZAMOK_FENCE
and ZAMOK_TOKEN in its environment.

With -s others who say -s run beside it, and nobody else; with -N so many run at a
time.

When the lock is lost, COMMAND and all processes of its group get SIGTERM, and
SIGKILL after --kill-after, before another can have the lock. That holds also
when zamok is killed or stopped: a second process sees to it.`,
		Example: `  zamok run nightly -- ./report.sh
  zamok run --tick cleanup -- ./cleanup.sh      in the crontabs of many hosts
  zamok run -w 10m --max-run 1h deploy -- make deploy
  zamok run -s config -- ./read-config          beside other readers
  zamok run -N 3 api -- ./crawl                 three at a time
  zamok run --with stock --with orders nightly -- ./close-books.sh`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			if f.tick.given {
				return a.runTick(cmd.Context(), f)
			}
			return a.runLocked(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.addKinds(flags)
	f.addLimits(flags, "exit code `N` when the lock was not obtained; 0 also keeps silent\nabout it")
	f.addWith(flags)
	f.ttl = duration(15 * time.Second)
	flags.Var(&f.ttl, "ttl", "`TIME` after which the lock of a crashed machine is free again;\na lock in use is renewed and can be held for longer")
	flags.Var(&f.minHold, "hold-min", "keep the name taken at least this `TIME`, also when COMMAND is done\nsooner: for cron on hosts whose clocks differ")
	flags.Var(&f.maxRun, "max-run", "stop COMMAND after this `TIME`, exit with 124 (default: never)")
	flags.VarP(&f.killAfter, "kill-after", "k", "`TIME` from SIGTERM to SIGKILL; at most a third of --ttl\n(default: a fifth of --ttl)")
	flags.StringVar(&f.onLost, "on-lost", "terminate", "terminate or ignore (`WHAT`): COMMAND, when the lock is lost")
	f.tick.add(flags)
	f.addTalk(flags)
	f.server.add(flags)
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
		return f.tick.tooMany(args[:dash])
	case len(args) == dash:
		return usage(runForm, "no command given after --")
	}
	f.name, f.argv = args[0], args[1:]
	f.limited = cmd.Flags().Changed("wait")
	f.service = filepath.Base(f.argv[0])
	f.command = fmt.Sprintf("zamok run %s -- %s", cut(f.name, 100), f.argv[0])
	if !cmd.Flags().Changed("kill-after") {
		f.killAfter = f.ttl / 5
	}
	if err := f.checkQuorum(cmd.Flags().Changed); err != nil {
		return err
	}
	if err := f.checkLimits(0); err != nil {
		return err
	}
	if err := f.checkKinds(cmd.Flags().Changed); err != nil {
		return err
	}
	if err := f.checkFlags(); err != nil {
		return err
	}
	if err := checkName(f.server.prefix, f.name); err != nil {
		return err
	}
	if err := f.checkWith(); err != nil {
		return err
	}
	if err := f.tick.check(cmd, f, time.Now()); err != nil {
		return err
	}
	_, err := child.Look(f.argv[0], os.Environ())
	return err
}

func (f *runFlags) checkFlags() error {
	if err := checkTTL(f.ttl, "15s suits most; it is what a crash costs the next in line, not the longest run"); err != nil {
		return err
	}
	switch {
	case f.killAfter > f.ttl/3:
		return usage("the command must be dead before the lock can end: raise --ttl or lower -k", "--kill-after is %v, more than a third of --ttl, %v", &f.killAfter, &f.ttl)
	case f.minHold > 0 && len(f.with) > 0:
		return usage("leave out one: of several locks, some would rest that nobody has used", "--hold-min and --with were both given")
	case f.minHold > duration(24*time.Hour):
		return usage("it is for clocks that differ by seconds", "--hold-min is %v; at most 24h", &f.minHold)
	case f.minHold > 0 && (f.shared || f.slots > 0):
		return usage("it keeps a name taken, and here several have it: leave out one", "--hold-min is not for --shared, nor for --slots")
	case f.onLost != "terminate" && f.onLost != "ignore":
		return usage("write --on-lost=terminate or --on-lost=ignore", "--on-lost is %q", f.onLost)
	}
	return nil
}
