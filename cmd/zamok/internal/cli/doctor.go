package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/inspect/doctor"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// doctorFlags are those of zamok doctor.
type doctorFlags struct {
	server   serverFlags
	json     bool
	scan     bool
	ttl      duration
	measure  duration
	acl      string
	operator bool
	cluster  bool
}

func (a *app) doctorCommand() *cobra.Command {
	f := doctorFlags{ttl: duration(15 * time.Second), measure: duration(time.Second)}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Find what makes locks unsafe or slow on this server",
		Long: `Looks at the server as the user of the URL, and says what makes locks unsafe or
slow on it, why, and what to do about it. It changes nothing there.

The exit code is 0 if nothing is worse than a note, 1 with warnings, and 2 when
locks do not work or are unsafe without any fault.

With --quorum it looks at all members, and at whether they are a quorum together; one
that does not answer is a warning, fewer than a majority are critical.

With --acl it asks no server, and prints the command that gives a user the rights
that zamok needs.`,
		Example: `  zamok doctor
  zamok doctor --json | jq '.findings[] | select(.severity != "ok")'
  zamok doctor --acl app | redis-cli`,
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch changed := cmd.Flags().Changed; {
			case changed("acl"):
				return a.printRights(&f)
			case f.operator:
				return usage("write: zamok doctor --acl USER --operator", "--operator is for --acl alone")
			case f.cluster:
				return usage("write: zamok doctor --acl USER --cluster", "--cluster is for --acl alone")
			}
			return a.doctor(cmd.Context(), &f)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON: see docs/cli.md")
	cmd.Flags().BoolVar(&f.scan, "scan", false, "look at all keys of the database, not at 100,000 of them, for keys without a TTL")
	cmd.Flags().Var(&f.ttl, "ttl", "shortest TTL (`TIME`) of the locks, against which pauses are measured")
	cmd.Flags().Var(&f.measure, "for", "how much `TIME` to watch the server's answers and clock")
	cmd.Flags().StringVar(&f.acl, "acl", "", "print the command that gives `USER` the rights that zamok needs")
	cmd.Flags().BoolVar(&f.cluster, "cluster", false, "with --acl: and those for a cluster")
	cmd.Flags().BoolVar(&f.operator, "operator", false, "with --acl: and those for zamok ls --scan and zamok doctor")
	f.server.add(cmd.Flags())
	return cmd
}

func (a *app) doctor(ctx context.Context, f *doctorFlags) error {
	c := doctor.Config{Prefix: f.server.prefix, TTL: time.Duration(f.ttl), Measure: time.Duration(f.measure)}
	if f.scan {
		c.Keys = -1
	}
	if f.server.quorum {
		// Looking takes its time beside that for which a member is tried to be reached.
		f.server.timeout += f.measure + duration(30*time.Second)
		return a.lookingAtAll(ctx, &f.server, func(ctx context.Context, q *quorum) error {
			findings, err := doctor.ExamineQuorum(ctx, q.nodes, &c)
			if err != nil {
				return err
			}
			return a.tellFindings(f, q.String(), findings)
		})
	}
	signals := watchSignals(ctx, a.ignored)
	defer signals.stop()
	srv, err := a.open(signals.waiting, &f.server)
	if err != nil {
		return err
	}
	defer srv.close()
	var findings []doctor.Finding
	if cluster, ok := srv.client.(*redis.ClusterClient); ok {
		findings, err = examineCluster(signals.waiting, srv.driver, cluster, &c)
	} else {
		findings, err = doctor.Examine(signals.waiting, srv.driver, &c)
	}
	if err != nil {
		return stoppedShort(signals.waiting, err)
	}
	return a.tellFindings(f, srv.target.String(), findings)
}

// examineCluster looks at every primary, by the address that the cluster knows it by.
func examineCluster(ctx context.Context, d driver.Driver, cluster *redis.ClusterClient, c *doctor.Config) ([]doctor.Finding, error) {
	var mu sync.Mutex
	var primaries []zamok.Node
	err := cluster.ForEachMaster(ctx, func(_ context.Context, one *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		primaries = append(primaries, zamok.Node{Name: one.Options().Addr, Driver: zamokgoredis.New(one)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(primaries, func(a, b zamok.Node) int { return strings.Compare(a.Name, b.Name) })
	return doctor.ExamineCluster(ctx, d, primaries, c)
}

func (a *app) tellFindings(f *doctorFlags, server string, findings []doctor.Finding) error {
	switch doctor.Worst(findings) {
	case doctor.OK, doctor.Note:
	case doctor.Warning:
		a.code = exit.Failed
	default:
		a.code = exitUnsafe
	}
	if f.json {
		return a.json(jsonOfExam(server, findings))
	}
	return a.print(func(w io.Writer) { printFindings(w, findings) })
}

// stoppedShort says why the server could not be asked to the end. What it did not
// say itself, nor the user, is silence, whatever the client library makes of it.
func stoppedShort(ctx context.Context, err error) error {
	var said *driver.ServerError
	var bad *zamok.ConfigError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &said), errors.As(err, &bad):
		return err
	}
	return &failure{code: exit.Unavailable, err: err, hint: "check that the server runs and can be reached from here"}
}

// exitUnsafe is the exit code of zamok doctor alone: as of linters and monitors, 0, 1
// and 2 are good, doubtful and bad.
const exitUnsafe = 2

// printRights prints a line for redis-cli. It has no password in it: whoever
// pipes it as it is must not make a user whose password everybody can read here.
func (a *app) printRights(f *doctorFlags) error {
	if f.acl == "" || strings.ContainsFunc(f.acl, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` "'`, r) }) {
		return usage("write for example: zamok doctor --acl app", "%q cannot be the name of a user", f.acl)
	}
	rules := doctor.Rights(f.server.prefix)
	if f.cluster {
		rules = append(rules, doctor.RightsInCluster()...)
	}
	if f.operator {
		rules = append(rules, doctor.RightsToLook()...)
	}
	a.talk.say("for redis-cli, not for a shell; a new user needs a password too: ACL SETUSER %s >PASSWORD", f.acl)
	return a.print(func(w io.Writer) {
		fmt.Fprintf(w, "ACL SETUSER %s on %s\n", f.acl, strings.Join(rules, " "))
	})
}

// The JSON form. Fields are added, never renamed or taken away.
type jsonExam struct {
	Server   string        `json:"server"`
	Severity string        `json:"severity"` // the worst
	Findings []jsonFinding `json:"findings"` // the worst first
}

type jsonFinding struct {
	Member   string `json:"member,omitempty"` // of a quorum, or a primary of a cluster; none of one server, and of all together
	Check    string `json:"check"`
	Severity string `json:"severity"`
	Found    string `json:"found"`
	Reason   string `json:"reason"`
	Remedy   string `json:"remedy"`
}

func jsonOfExam(server string, findings []doctor.Finding) jsonExam {
	r := jsonExam{Server: server, Severity: string(doctor.Worst(findings)), Findings: []jsonFinding{}}
	for _, f := range findings {
		r.Findings = append(r.Findings, jsonFinding{f.Member, f.Check, string(f.Severity), f.Found, f.Reason, f.Remedy})
	}
	return r
}

// printFindings writes the bad ones with what they mean and what helps, and a
// line for each that is in order.
func printFindings(w io.Writer, findings []doctor.Finding) {
	count := map[doctor.Severity]int{}
	for _, f := range findings {
		count[f.Severity]++
		head := fmt.Sprintf("%-8s  %-11s  ", f.Severity, f.Check)
		found := visible(f.Found)
		if f.Member != "" {
			found = visible(f.Member) + ": " + found
		}
		writeParagraph(w, head, found)
		if f.Reason != "" {
			writeParagraph(w, "", visible(f.Reason))
		}
		if f.Remedy != "" {
			writeParagraph(w, "", "→ "+visible(f.Remedy))
		}
		if f.Severity != doctor.OK {
			fmt.Fprintln(w)
		}
	}
	var words []string
	for _, s := range []doctor.Severity{doctor.Critical, doctor.Warning, doctor.Note, doctor.OK} {
		switch n := count[s]; {
		case n == 1 || n > 1 && (s == doctor.Critical || s == doctor.OK):
			words = append(words, fmt.Sprintf("%d %s", n, s))
		case n > 1:
			words = append(words, fmt.Sprintf("%d %ss", n, s))
		}
	}
	if count[doctor.OK] > 0 { // they stand last
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, strings.Join(words, ", "))
}

// findingMargin is the column at which the text of a finding begins.
const findingMargin = 23

// writeParagraph writes text in lines that end within the page. A word that is longer
// than a line is parted.
func writeParagraph(w io.Writer, head, text string) {
	line, used := fmt.Sprintf("%-*s", findingMargin, head), 0
	flush := func() {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		line, used = strings.Repeat(" ", findingMargin), 0
	}
	for _, word := range strings.Fields(text) {
		for {
			n := utf8.RuneCountInString(word)
			if used > 0 && used+1+n <= width-findingMargin {
				line, used = line+" "+word, used+1+n
				break
			}
			if used > 0 {
				flush()
			}
			if n <= width-findingMargin {
				line, used = line+word, n
				break
			}
			r := []rune(word)
			line, used, word = line+string(r[:width-findingMargin]), width-findingMargin, string(r[width-findingMargin:])
		}
	}
	flush()
}
