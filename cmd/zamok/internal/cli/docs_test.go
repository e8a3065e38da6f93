package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

var update = flag.Bool("update", false, "write the generated parts of docs/cli.md anew")

const cliDoc = "../../../../docs/cli.md"

// What docs/cli.md says of exit codes and flags is what the program has. Between
// its BEGIN and END marks the file is made by `go test ./internal/cli -update`.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile(cliDoc)
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	defer a.talk.close()
	parts := map[string]string{"exit codes": docExits()}
	for _, cmd := range a.root().Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		if table, some := docFlags(cmd); some {
			parts["flags "+cmd.Name()] = table
		}
	}
	doc := string(b)
	for name, want := range parts {
		begin, end := "<!-- BEGIN "+name+" -->\n", "<!-- END "+name+" -->"
		head, rest, ok1 := strings.Cut(doc, begin)
		got, tail, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Errorf("no part %q in docs/cli.md", name)
			continue
		}
		if got != want && !*update {
			t.Errorf("part %q of docs/cli.md is not what the program has (go test ./internal/cli -update):\n%s\nwant:\n%s", name, got, want)
		}
		doc = head + begin + want + end + tail
	}
	if *update {
		if err := os.WriteFile(cliDoc, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func docExits() string {
	var b strings.Builder
	b.WriteString("| code | meaning |\n|---|---|\n")
	for _, e := range exit.Table() {
		fmt.Fprintf(&b, "| %s | %s |\n", e.Code, e.Meaning)
	}
	return b.String()
}

// docFlags is the table of the command's flags, and whether it has any of its own.
func docFlags(cmd *cobra.Command) (table string, some bool) {
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	server := map[string]bool{}
	var common serverFlags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	common.add(set)
	set.VisitAll(func(f *pflag.Flag) { server[f.Name] = cmd.Name() != "run" })
	cmd.Flags().SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden || server[f.Name] && (f.Name != "redis" || cmd.Name() != "demo") {
			return
		}
		arg, text := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, `--" + f.Name
		}
		if arg != "" {
			name += " " + arg
		}
		some = true
		fmt.Fprintf(&b, "| %s` | %s | %s |\n", name, f.DefValue, strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", "\\|"))
	})
	return b.String(), some
}

// Every exit code of the table is in the help text of zamok run.
func TestHelpHasExitCodes(t *testing.T) {
	lines := exitLines("  ")
	for _, e := range exit.Table() {
		if !strings.Contains(lines, e.Code) || !strings.Contains(lines, e.Meaning) {
			t.Errorf("%s is missing in:\n%s", e.Code, lines)
		}
	}
}
