package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/inspect"
)

// What monitoring plugins exit with.
const (
	checkOK = iota
	checkWarning
	checkCritical
	checkUnknown
)

// checkNames are the words for that.
var checkNames = []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}

// checkFlags are the flags of zamok check.
type checkFlags struct {
	server   serverFlags
	pattern  string
	held     duration
	waited   duration
	textfile string
	asJSON   bool
}

func (a *app) checkCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [flags] [PATTERN]",
		Short: "Look for locks that are in trouble, for monitoring",
		Long: `Looks at the locks whose names match PATTERN, all without one, and says what is wrong
and what to do: held or waited for too long, a holder that is gone or does not renew,
holders that wait for each other, keys that never expire, semaphores with more
permits held than there are. The first line is a
summary in the form of monitoring plugins, with their exit codes: 0 all is well,
1 warning, 2 critical, 3 nobody could look.`,
		Example:               "  zamok check --held 2h --waited 10m\n  zamok check 'deploy-*' --held 30m\n  zamok check --textfile /var/lib/node_exporter/zamok.prom",
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("put the pattern in quotes, so that the shell leaves it alone", "one pattern is expected, not %d", len(args))
			}
			f.pattern = strings.Join(args, "")
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("textfile") && f.textfile == "" {
				return usage("it is the name of a file, such as /var/lib/node_exporter/zamok.prom", "--textfile is empty")
			}
			return a.unknown(f, a.looking(cmd.Context(), &f.server, func(ctx context.Context, in *inspect.Inspector) error {
				return a.check(ctx, f, in)
			}))
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *checkFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(&f.held, "held", "a lock that is held for more than this `TIME` is a problem\n(default: it may be held for as long as it is renewed)")
	flags.Var(&f.waited, "waited", "a lock for which somebody waits for more than this `TIME` is a problem\n(default: they may wait)")
	flags.StringVar(&f.textfile, "textfile", "", "write metrics to this `FILE`, for the textfile collector of\nnode_exporter, which reads those that end in .prom")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: see docs/cli.md")
	f.server.add(flags)
	flags.Lookup("held").DefValue = ""
	flags.Lookup("waited").DefValue = ""
}

func (a *app) check(ctx context.Context, f *checkFlags, in *inspect.Inspector) error {
	r, err := in.Check(ctx, &inspect.CheckConfig{Pattern: f.pattern, Held: time.Duration(f.held), Waited: time.Duration(f.waited)})
	if err != nil {
		return err
	}
	a.code = verdict(r)
	if f.asJSON {
		err = a.json(jsonReportOf(r))
	} else {
		err = a.print(func(w io.Writer) { f.printReport(w, r) })
	}
	if r.Unnamed > 0 {
		a.talk.say("warning: %s and waits were not looked at, since their processes have more than they can name", counted(r.Unnamed, "lease"))
	}
	if err == nil && f.textfile != "" {
		a.writeMetrics(f, r)
	}
	return err
}

func verdict(r *inspect.Report) int {
	switch {
	case r.Critical():
		return checkCritical
	case len(r.Problems) > 0:
		return checkWarning
	}
	return checkOK
}

// unknown is for what kept us from looking: monitoring shows the first line of
// stdout and knows 0 to 3, so the error stands there too, and its code is 3. A
// mistake on the command line stays one.
func (a *app) unknown(f *checkFlags, err error) error {
	why := explain(err)
	var stopped *interrupted
	if err == nil || why.code == exit.Usage || errors.As(err, &stopped) {
		return err
	}
	text := a.talk.clean(strings.ReplaceAll(why.Error(), "\n", " "))
	if f.asJSON {
		_ = a.json(jsonUnknown{Status: "unknown", Error: text})
	} else {
		_ = a.print(func(w io.Writer) { fmt.Fprintf(w, "ZAMOK %s - %s\n", checkNames[checkUnknown], unpiped(text)) })
	}
	return &failure{code: checkUnknown, err: why, hint: why.hint}
}

// unpiped takes out what parts a plugin's text from its numbers.
func unpiped(text string) string { return strings.ReplaceAll(text, "|", "¦") }

// mostLines is how many problems are printed: a plugin's output is cut at some
// kilobytes anyway, and --json has all.
const mostLines = 100

func (f *checkFlags) printReport(w io.Writer, r *inspect.Report) {
	fmt.Fprintf(w, "ZAMOK %s - %s | %s\n", checkNames[verdict(r)], unpiped(summary(r)), numbers(r))
	for n, p := range r.Problems {
		if n == mostLines {
			fmt.Fprintf(w, "and %d more\n", len(r.Problems)-n)
			return
		}
		fmt.Fprintln(w, unpiped(f.problemLine(p)))
	}
}

func summary(r *inspect.Report) string {
	processes := "1 process"
	if r.Processes != 1 {
		processes = fmt.Sprintf("%d processes", r.Processes)
	}
	holders := ""
	if r.Holders > r.Held { // of readers, and of semaphores
		holders = fmt.Sprintf(" by %d", r.Holders)
	}
	text := fmt.Sprintf("%s held%s, %d waiting, %s", counted(r.Held, "lock"), holders, r.Waiting, processes)
	if len(r.Problems) == 0 {
		return text
	}
	var kinds []string
	for _, kind := range kindsOf(r) {
		switch n := r.Counts[kind]; {
		case n == 0:
		case kind == inspect.ProblemDeadlock:
			kinds = append(kinds, counted(n, "deadlock"))
		default:
			kinds = append(kinds, fmt.Sprintf("%d %s", n, cmp.Or(kindWords[kind], kind)))
		}
	}
	return counted(len(r.Problems), "problem") + ": " + strings.Join(kinds, ", ") + "; " + text
}

// kindWords follow a number of locks; a kind that is not here is its own word.
var kindWords = map[string]string{
	inspect.ProblemHeld:    "held for too long",
	inspect.ProblemWaited:  "waited for too long",
	inspect.ProblemNoTTL:   "without an end",
	inspect.ProblemSilent:  "with a silent holder",
	inspect.ProblemLate:    "not renewed in time",
	inspect.ProblemPermits: "with permits at odds",
}

func kindsOf(r *inspect.Report) []string {
	var kinds []string
	for kind := range r.Counts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// numbers are a plugin's performance data.
func numbers(r *inspect.Report) string {
	return fmt.Sprintf("held=%d;;;0 holders=%d;;;0 waiting=%d;;;0 processes=%d;;;0 problems=%d;;;0 longest_hold=%.3fs;;;0 longest_wait=%.3fs;;;0",
		r.Held, r.Holders, r.Waiting, r.Processes, len(r.Problems), r.LongestHold.Seconds(), r.LongestWait.Seconds())
}

// problemLine says what is wrong with which lock, and what to do.
func (f *checkFlags) problemLine(p inspect.Problem) string {
	level := "warning"
	if p.Critical {
		level = "critical"
	}
	if p.Deadlock == nil { // the names of the others are in the text
		level += " " + p.Kind + " " + visible(p.Lock.Title())
	} else {
		level += " " + p.Kind
	}
	return fmt.Sprintf("%s: %s: %s", level, problemText(p), f.advice(p))
}

func problemText(p inspect.Problem) string {
	if p.Deadlock != nil {
		return strings.Join(deadlockLines(*p.Deadlock), "; ")
	}
	return visible(p.Text)
}

// advice is the command to run next.
func (f *checkFlags) advice(p inspect.Problem) string {
	lock := f.argument(p.Lock)
	which := ""
	if p.Lock.Holding > 1 && p.Token != "" {
		which = " --token " + shellWord(p.Token)
	}
	show, broken, now := "zamok show"+lock, "zamok break --reason TEXT"+which+lock, "zamok break --now --reason TEXT"+which+lock
	switch p.Kind {
	case inspect.ProblemDeadlock:
		return show + ", or end it with " + broken
	case inspect.ProblemNoTTL:
		return show + ", and when its program is gone " + now
	case inspect.ProblemPermits:
		return show + ", or say how many there are with zamok slots" + f.argument(p.Lock) + " N"
	case inspect.ProblemHeld, inspect.ProblemLate:
		return show + ", or have it stop with " + broken
	case inspect.ProblemSilent:
		return show + ", or when its process is surely dead " + now
	}
	return show
}

// argument is the lock as it is to be written at the end of a command of ours:
// behind -- there are no flags.
func (f *checkFlags) argument(l inspect.Lock) string {
	text := ""
	if f.server.prefix != "" {
		text += " --prefix " + shellWord(f.server.prefix)
	}
	switch {
	case l.Kind == inspect.KindSemaphore:
	case l.Key != "" && l.Key != f.server.prefix+"lock:"+l.Name, strings.HasPrefix(l.Name, semaphoreMark):
		return text + " --key " + shellWord(l.Key)
	case strings.HasPrefix(l.Name, "-"):
		return text + " -- " + shellWord(l.Name)
	}
	return text + " " + shellWord(l.Title())
}

// shellWord quotes text for a shell, where it must be.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/@%+,=", r)
	}
	switch quoted := strconv.Quote(text); {
	case text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0:
		return text
	case visible(text) == text && !strings.Contains(text, "|"):
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	default: // the quotes of bash, zsh and others; a bar would end a plugin's text
		return "$'" + strings.NewReplacer("'", `\'`, "|", `\x7c`).Replace(quoted[1:len(quoted)-1]) + "'"
	}
}
