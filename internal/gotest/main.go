// Command gotest runs the tests of several modules and prints, at the end, one
// line with the totals: "N passed, N failed, N skipped".
//
//	go run ./internal/gotest [-race=-race] MODULE… [-- MODULE…]
//	go run ./internal/gotest -servers [-brief] [-report FILE] FOLDER…
//
// Modules before the -- get the flag of -race and run in the workspace; those
// behind it run alone (GOWORK=off), one package at a time and without the race
// detector, since they measure times. With -servers it runs what needs a server on
// each of those that scripts/servers fetched, see suites. It exists because go test counts nothing,
// and because a summary of several runs must not hide that one of them failed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gotest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	race := flags.String("race", "", "flag for the modules of the workspace")
	servers := flags.Bool("servers", false, "run the suites on the server in each folder")
	brief := flags.Bool("brief", false, "with -servers: some minutes' worth of them")
	report := flags.String("report", "", "with -servers: `file` that has a table of the results")
	if flags.Parse(args) != nil {
		return 2
	}
	if *servers {
		return runServers(flags.Args(), *brief, *report, stdout, stderr)
	}
	var t totals
	failed, alone := false, false
	for _, module := range flags.Args() {
		if module == "--" {
			alone = true
			continue
		}
		goArgs := []string{"test", "-json"}
		if alone {
			goArgs = append(goArgs, "-p=1")
		} else if *race != "" {
			goArgs = append(goArgs, *race)
		}
		start := time.Now()
		if err := test(module, append(goArgs, "./..."), alone, &t, stdout, stderr); err != nil {
			fmt.Fprintf(stdout, "FAILED module %s: %v\n", module, err)
			failed = true
		}
		fmt.Fprintf(stdout, "module %s took %.1fs\n", module, time.Since(start).Seconds())
	}
	fmt.Fprintln(stdout, t)
	if failed || t.failed > 0 || t.passed == 0 {
		return 1
	}
	return 0
}

func test(module string, args []string, alone bool, t *totals, stdout, stderr io.Writer) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = module, stderr
	if alone {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.read(out, stdout)
	return cmd.Wait()
}

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build event
	Test       string
	Output     string
	Elapsed    float64
}

// totals counts tests and subtests, as their own lines say.
type totals struct {
	passed, failed, skipped int
	each                    func(event) // is told of what is counted; may be nil
}

// count counts the end of a test, or the failure of a package.
func (t *totals) count(e event) {
	switch e.Action {
	case "pass":
		t.passed++
	case "fail":
		t.failed++
	case "skip":
		t.skipped++
	}
	if t.each != nil {
		t.each(e)
	}
}

func (t totals) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// read counts the events of one go test and prints what a person wants to see of
// them: a line for each package, all that a failed test said, and every skip.
func (t *totals) read(in io.Reader, stdout io.Writer) {
	said := make(map[string]*strings.Builder) // by package and test
	failures := make(map[string]int)          // by package
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			_, _ = stdout.Write(line) // not an event: go test itself has something to say
		default:
			t.take(e, said, failures, stdout)
		}
		if err != nil {
			return
		}
	}
}

func (t *totals) take(e event, said map[string]*strings.Builder, failures map[string]int, stdout io.Writer) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output":
		if said[key] == nil {
			said[key] = new(strings.Builder)
		}
		said[key].WriteString(e.Output)
		return
	case "build-output":
		fmt.Fprint(stdout, e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	output := ""
	if said[key] != nil {
		output = said[key].String()
		delete(said, key)
	}
	if e.Test == "" {
		if e.Action == "fail" {
			unfinished(e.Package, said, stdout)
		}
		t.endPackage(e, output, failures[e.Package], stdout)
		return
	}
	t.count(e)
	if e.Action == "fail" {
		failures[e.Package]++
	}
	if e.Action != "pass" {
		fmt.Fprintf(stdout, "%s: %s\n%s", e.Package, e.Test, spoken(output))
	}
}

// unfinished prints the end of what the tests said that were under way when their
// program ended, which is where a crash of it stands.
func unfinished(pkg string, said map[string]*strings.Builder, stdout io.Writer) {
	const most = 8000
	for key, output := range said {
		if test, ok := strings.CutPrefix(key, pkg+"\x00"); ok && test != "" {
			text := spoken(output.String())
			fmt.Fprintf(stdout, "%s: %s did not end\n%s\n", pkg, test, text[max(0, len(text)-most):])
			delete(said, key)
		}
	}
}

// spoken leaves out the lines that only say that a test began, paused or went on.
func spoken(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// endPackage prints the line of a package. One that failed although none of its
// tests did (it does not build, it panicked, it ran out of time) counts as one
// failure.
func (t *totals) endPackage(e event, output string, failures int, stdout io.Writer) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(stdout, "ok    %s %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		if failures == 0 {
			t.count(e)
		}
		fmt.Fprintf(stdout, "%sFAIL  %s %.1fs\n", output, e.Package, e.Elapsed)
	}
}
