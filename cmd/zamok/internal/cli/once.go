package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/once"
)

// onceFlags are the flags of zamok once.
type onceFlags struct {
	runFlags  // of which --try, --hold-min and --on-lost are not offered
	key       string
	policy    string
	retention duration
	input     string
	inputFile string
	forget    bool
	resolve   string
	changed   func(flag string) bool

	body []byte // of --input or --input-file; nil: none was given
	code int    // of --resolve
}

func (a *app) onceCommand() *cobra.Command {
	f := &onceFlags{}
	cmd := &cobra.Command{
		Use:   "once KEY --policy POLICY [flags] -- COMMAND [ARG...]",
		Short: "Run a command once for each key, and remember what came of it",
		Long: `Runs COMMAND unless KEY was done before, on this host or another, and remembers its
exit code: a later call with the same KEY does not run it and exits with that code.
Calls with the same KEY run one at a time, in order of arrival.

When zamok or its machine dies while COMMAND runs, nobody knows whether it was done.
--policy says what the next call does then: with give-up it does not run COMMAND and
exits with 80 until somebody says --forget or --resolve; with retry it runs it again.
Under give-up a failure counts as an outcome; under retry the next call tries again.`,
		Example: `  zamok once welcome/17 --policy give-up -- ./send-mail.sh 17
  zamok once import/2026-01-31 --policy retry -- ./import.sh
  zamok once --resolve 0 welcome/17        it was done: exit with 0 from now on
  zamok once --forget welcome/17           it was not: the next call runs it`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return a.once(cmd.Context(), f)
		},
	}
	f.add(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{"give-up", "retry"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *onceFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	f.ttl, f.retention = duration(15*time.Second), duration(24*time.Hour)
	f.conflict, f.onLost, f.missed = exit.NotObtained, "terminate", "another run has not ended"
	flags.StringVar(&f.policy, "policy", "", "give-up (at most once) or retry (until one run exits with 0, at least once):\nthe `POLICY` when nobody knows how a run ended; needed")
	flags.Var(&f.retention, "retention", "`TIME` for which the outcome is remembered, and the longest time of a run;\nat least --ttl, and 1s to 43800h")
	flags.StringVar(&f.input, "input", "", "`TEXT` that belongs to KEY: with another one it is an error; only a hash\nis stored")
	flags.StringVar(&f.inputFile, "input-file", "", "`FILE` that belongs to KEY, as --input")
	flags.BoolVar(&f.forget, "forget", false, "remove what is remembered of KEY: the next call runs it")
	flags.StringVar(&f.resolve, "resolve", "", "say that KEY was done: later calls exit with `CODE`")
	flags.VarP(&f.wait, "wait", "w", "wait at most this `TIME` for a run that goes on elsewhere, then exit with\n75 (default: as long as it takes)")
	flags.Var(&f.ttl, "ttl", "`TIME` after which a run whose machine crashed counts as interrupted; a run\nmay last longer")
	flags.Var(&f.maxRun, "max-run", "stop COMMAND after this `TIME`; 124 is its exit code then (default: never)")
	flags.VarP(&f.killAfter, "kill-after", "k", "`TIME` from SIGTERM to SIGKILL; at most a third of --ttl\n(default: a fifth of --ttl)")
	f.addTalk(flags)
	f.server.add(flags)
	for _, said := range []string{"wait", "max-run", "kill-after"} {
		flags.Lookup(said).DefValue = "" // in the text, or none
	}
}

const onceForm = "write: zamok once KEY --policy give-up -- COMMAND [ARG...]"

// policyHint explains the choice, a line each.
const policyHint = "--policy give-up: at most once; a run whose end nobody knows is not run again, and somebody finds out: for mails\n" +
	"--policy retry: at least once; such a run is run again, as after a failure: for what does no harm twice"

// check takes the arguments and flags together, before anything is sent.
func (f *onceFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.checkArgs(cmd.ArgsLenAtDash(), args); err != nil {
		return err
	}
	f.key, f.name = args[0], "once/"+args[0]
	f.limited = f.changed("wait")
	f.service, f.command = "zamok once", "zamok once "+cut(f.key, 100)
	if !f.changed("kill-after") {
		f.killAfter = f.ttl / 5
	}
	if f.key == "" {
		return usage(onceForm, "KEY is empty")
	}
	for _, check := range []func() error{f.checkReason, f.checkFlags, f.checkRetention, f.readInput} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := checkName(f.server.prefix, f.name); err != nil || f.settles() {
		return err
	}
	f.argv = args[1:]
	f.service, f.command = filepath.Base(f.argv[0]), f.command+" -- "+f.argv[0]
	_, err := child.Look(f.argv[0], os.Environ())
	return err
}

// settles says whether no command is to be run.
func (f *onceFlags) settles() bool { return f.forget || f.changed("resolve") }

func (f *onceFlags) checkSettling(dash int, args []string) (err error) {
	switch {
	case f.forget && f.changed("resolve"):
		return usage("--forget: it was not done; --resolve: it was. Leave out one", "--forget and --resolve were both given")
	case len(args) != 1 || dash >= 0:
		return usage("write: zamok once --forget KEY, or zamok once --resolve CODE KEY", "one KEY and no command is expected")
	case f.forget:
		return nil
	}
	if f.code, err = strconv.Atoi(f.resolve); err != nil || f.code < 0 || f.code > 255 {
		return usage("write 0 to 255: 0 says that it went well", "--resolve is %q, which is no exit code", f.resolve)
	}
	return nil
}

func (f *onceFlags) checkArgs(dash int, args []string) error {
	switch {
	case f.settles():
		return f.checkSettling(dash, args)
	case len(args) == 0 || dash == 0:
		return usage(onceForm, "no KEY given")
	case dash < 0 && len(args) > 1:
		return usage(onceForm, "-- is missing before the command")
	case dash > 1:
		return usage(onceForm, "one KEY is expected before --, not %d: %q", dash, args[:dash])
	case len(args) == 1:
		return usage(onceForm, "no command given")
	case f.policy == "":
		return usage(policyHint, "--policy is missing: only you know what may happen twice")
	case f.policy != "give-up" && f.policy != "retry":
		return usage(policyHint, "--policy is %q", f.policy)
	}
	return nil
}

func (f *onceFlags) checkReason() error {
	if len(f.reason) > 256 {
		return usage("shorten it", "--reason has %d bytes; at most 256 are allowed", len(f.reason))
	}
	return nil
}

func (f *onceFlags) checkRetention() error {
	const hint = "it must be longer than anybody may repeat the call, and than a run may take"
	switch d := time.Duration(f.retention); {
	case d < time.Second || d > 43800*time.Hour:
		return usage(hint, "--retention is %v; it must be 1s to 43800h", d)
	case f.retention < f.ttl: // the run ends with it, and -k before that
		return usage(hint, "--retention is %v, less than --ttl, %v", d, &f.ttl)
	}
	return nil
}

func (f *onceFlags) readInput() error {
	switch {
	case f.changed("input") && f.changed("input-file"):
		return usage("leave out one", "--input and --input-file were both given")
	case f.changed("input"):
		f.body = []byte(f.input)
	case f.changed("input-file"):
		b, err := os.ReadFile(f.inputFile)
		if err != nil {
			return &failure{code: exit.Config, err: fmt.Errorf("cannot read the input: %w", err), hint: "--input-file names the file that belongs to KEY"}
		}
		f.body = b
	}
	return nil
}

// open makes the Once of these flags.
func (f *onceFlags) open(client *zamok.Client) (*once.Once, error) {
	cfg := &once.Config{
		Policy: once.GiveUp, Retention: time.Duration(f.retention),
		TTL: time.Duration(f.ttl), Grace: f.mutex().Grace, Reason: f.reason,
	}
	if f.policy == "retry" {
		cfg.Policy = once.Retry
	}
	if f.limited {
		cfg.Wait = max(time.Duration(f.wait), time.Millisecond) // 0 would mean: no limit
	}
	o, err := once.New(client, cfg)
	if err == nil && f.body != nil {
		o = o.WithInput(f.body)
	}
	return o, err
}
