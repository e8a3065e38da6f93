package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// suite is tests that need a server, and a column of the report.
type suite struct {
	title       string
	module, pkg string
	brief       string   // of which these are enough where time is short
	flags       []string // of go test
}

// suites are run on each server. A test that has the name of another deployment
// in its own counts in that one's column, whichever suite has it.
var suites = []suite{
	{title: "go-redis", module: "zamokgoredis", pkg: ".", brief: "."},
	{title: "rueidis", module: "zamokrueidis", pkg: ".", brief: "."},
	{title: "rights", module: "lab", pkg: "./acl", brief: "."},
	// Mutants try the test and not the server.
	{title: "scripts", module: "lab", pkg: "./diff", brief: ".", flags: []string{"-skip=TestMutantsAreSeen"}},
	{title: "cases", module: "lab", pkg: "./itest",
		brief: "^Test(Bad|Sentinel|Cluster|Break|Look|Patterns|Semaphore|Case(01|02|09|18|21|23|25|26|28|36Later|37)|Commands)"},
}

var deployments = []string{"Sentinel", "Cluster"}

// column returns where a test of a suite counts.
func (s suite) column(test string) string {
	for _, d := range deployments {
		if strings.Contains(test, d) {
			return d
		}
	}
	return s.title
}

// matrix is the results of one server by column.
type matrix map[string]*cell

type cell struct {
	totals
	bad []string // top-level tests that failed
}

func (c *cell) String() string {
	if c == nil {
		return "–"
	}
	text := fmt.Sprintf("%d passed", c.passed)
	if c.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", c.skipped)
	}
	if c.failed > 0 {
		text += fmt.Sprintf(", %d failed: %s", c.failed, strings.Join(c.bad, ", "))
	}
	return text
}

func (m matrix) add(s suite, e event) {
	name := s.column(e.Test)
	c := m[name]
	if c == nil {
		c = &cell{}
		m[name] = c
	}
	c.count(e)
	test, _, _ := strings.Cut(e.Test, "/")
	test = cmp.Or(test, "the package")
	if e.Action == "fail" && !slices.Contains(c.bad, test) {
		c.bad = append(c.bad, test)
	}
}

// runServers runs the suites on each server, one after the other, and writes the
// results into the report, if there is one. Rows of servers that were not run stay.
func runServers(dirs []string, brief bool, report string, stdout, stderr io.Writer) int {
	var all totals
	for _, dir := range dirs {
		binary, err := filepath.Abs(filepath.Join(dir, "server"))
		if err == nil {
			err = os.Setenv("ZAMOK_TEST_REDIS_SERVER", binary)
		}
		version, ran := exec.Command(binary, "--version").Output()
		if err = cmp.Or(err, ran); err != nil {
			fmt.Fprintf(stderr, "%s: %v: scripts/servers fetches it\n", dir, err)
			return 1
		}
		fmt.Fprintf(stdout, "server %s: %s\n", filepath.Base(dir), named(version))
		m := matrix{}
		for _, s := range suites {
			t := totals{each: func(e event) { m.add(s, e); all.count(e) }}
			args := append([]string{"test", "-json", "-count=1", s.pkg}, s.flags...)
			if brief {
				args = append(args, "-run", s.brief)
			}
			if err := test(s.module, args, true, &t, stdout, stderr); err != nil && t.failed == 0 {
				t.count(event{Action: "fail"})
			}
		}
		if report != "" {
			if err := write(report, m.row(filepath.Base(dir), named(version), time.Now())); err != nil {
				fmt.Fprintln(stderr, err)
				return 1
			}
		}
	}
	fmt.Fprintln(stdout, all)
	if all.failed > 0 || all.passed == 0 {
		return 1
	}
	return 0
}

// named makes "Valkey 9.1.2" of what --version prints.
func named(version []byte) string {
	return regexp.MustCompile(`^(\w+) server v=(\S+)(?s:.*)`).ReplaceAllString(string(version), "$1 $2")
}

func (m matrix) row(name, version string, on time.Time) string {
	cells := []string{name, version, on.UTC().Format(time.DateOnly)}
	for _, s := range suites {
		cells = append(cells, m[s.title].String())
	}
	for _, d := range deployments {
		cells = append(cells, m[d].String())
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// write puts a row in the place of that of the same server.
func write(report, row string) error {
	text, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(row, " | ")
	lines := strings.Split(string(text), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+" | ") })
	if i < 0 {
		return fmt.Errorf("%s has no row that begins %q", report, name)
	}
	lines[i] = row
	return os.WriteFile(report, []byte(strings.Join(lines, "\n")), 0o644)
}
