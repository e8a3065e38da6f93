// Package cli is the command line: flags, messages, and what they become for
// the library. What a user can rely on is in docs/cli.md.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// app is one run of the program.
type app struct {
	stdin, stdout, stderr *os.File
	defaultURL            string // of the server, when none is given
	talk                  *talk
	ignored               []os.Signal // at start: nohup meant it
	code                  int         // what a command that did not fail exits with
	raise                 func()      // the last thing before the exit, or nil
}

// Run runs the program and returns its exit code. args are without the
// program's name.
func Run(ctx context.Context, args []string, stdin, stdout, stderr *os.File) int {
	a := newApp(stdin, stdout, stderr)
	code := a.run(ctx, args)
	if a.raise != nil {
		a.raise()
	}
	return code
}

func newApp(stdin, stdout, stderr *os.File) *app {
	return &app{
		stdin: stdin, stdout: stdout, stderr: stderr, defaultURL: "redis://127.0.0.1:6379",
		ignored: child.IgnoredAtStart(), talk: newTalk(stderr),
	}
}

func (a *app) run(ctx context.Context, args []string) (code int) {
	defer a.talk.close()
	defer a.recovered(&code)
	a.talk.hide(userinfos(args)...)
	root := a.root()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return a.report(err)
	}
	return a.code
}

// recovered is deferred: it makes a report of a panic.
func (a *app) recovered(code *int) {
	if p := recover(); p != nil {
		a.talk.dump(fmt.Sprintf("internal error: %v\n%s", p, debug.Stack()))
		a.talk.hint("this is a bug: please report it with the lines above and the output of `zamok version` at https://github.com/zamok-go/zamok/issues")
		*code = exit.Bug
	}
}

// report says what went wrong and what to do about it, and returns the exit
// code.
func (a *app) report(err error) int {
	f := explain(err)
	var stopped *interrupted
	if errors.As(err, &stopped) && stopped.sig == syscall.SIGINT && (isTerminal(a.stdin) || isTerminal(a.stderr)) {
		a.raise = func() { dieOf(syscall.SIGINT) }
	}
	if !f.silent {
		a.talk.fail("%v", f.err)
		if f.hint != "" {
			for line := range strings.SplitSeq(f.hint, "\n") {
				a.talk.hint("%s", line)
			}
		}
	}
	return f.code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "zamok",
		Short: "Distributed locks on Redis and Valkey: run a command on one machine at a time",
		Long: `zamok runs a command while it holds a named lock on a Redis or Valkey server, so
that of all the machines that try, one does it at a time, in order of arrival,
and stops the command when the lock is lost.

On one server that keeps its data, at most one holder has a lock at a time. When
the server loses data, two can overlap; the number in ZAMOK_FENCE then tells the
newer one from the older one. See docs/guarantees.md.`,
		Example: `  zamok demo                               see what it does; needs no server
  zamok run nightly -- ./report.sh         wait for the lock, run, release
  zamok run --tick cleanup -- ./cleanup.sh in the crontab of every host: one runs
  zamok run -N 3 api -- ./crawl             three at a time; -s beside other readers
  zamok once mail/17 --policy give-up -- ./mail.sh 17   at most once, by key
  zamok lock deploy --ttl 10m              for scripts: take a lock, print its token
  zamok show nightly                       who holds it, who waits
  zamok ls                                 all locks`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: parseQuorum,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				hint := "run `zamok --help` for the list"
				if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
					hint = fmt.Sprintf("did you mean `zamok %s`?", like[0])
				}
				return usage(hint, "%q is not a command of zamok", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			_ = cmd.Help()
			return &failure{code: exit.Usage, err: errors.New("no command given"), silent: true}
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(
		a.runCommand(), a.onceCommand(), a.lockCommand(), a.renewCommand(), a.unlockCommand(), a.waitCommand(), a.slotsCommand(),
		a.showCommand(), a.lsCommand(), a.breakCommand(), a.eventsCommand(), a.checkCommand(), a.doctorCommand(), a.initCommand(), a.quorumCommand(),
		a.demoCommand(), a.versionCommand(), a.manCommand(),
	)
	hideQuorum(root)
	root.InitDefaultCompletionCmd()
	root.SetHelpTemplate(root.HelpTemplate() + exitHelp())
	return root
}

func flagError(cmd *cobra.Command, err error) error {
	return usage(fmt.Sprintf("run `%s --help` for the flags", cmd.CommandPath()), "%w", err)
}

// exitHelp is the table of exit codes at the end of the help texts of zamok, of
// zamok run and of zamok once.
func exitHelp() string {
	return `{{if or (not .HasParent) (eq .Name "run") (eq .Name "once")}}` + "\nExit codes:\n" + exitLines("  ") + `{{end}}`
}

func exitLines(indent string) string {
	var b strings.Builder
	for _, e := range exit.Table() {
		fmt.Fprintf(&b, "%s%-6s %s\n", indent, e.Code, e.Meaning)
	}
	return b.String()
}
