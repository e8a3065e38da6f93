package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/inspect"
)

// reportOf is a report with these problems.
func reportOf(problems ...inspect.Problem) *inspect.Report {
	r := &inspect.Report{Held: 3, Holders: 5, Waiting: 2, Processes: 1, Silent: 1, LongestHold: 90 * time.Second, LongestWait: 1500 * time.Millisecond, Problems: problems}
	r.Counts = map[string]int{"held": 0, "deadlock": 0, "no-ttl": 0}
	for _, p := range problems {
		r.Counts[p.Kind]++
	}
	return r
}

func TestCheckVerdict(t *testing.T) {
	warning := inspect.Problem{Kind: "held"}
	critical := inspect.Problem{Kind: "no-ttl", Critical: true}
	for _, c := range []struct {
		r    *inspect.Report
		code int
		text string
	}{
		{reportOf(), 0, "3 locks held by 5, 2 waiting, 1 process"},
		{reportOf(warning), 1, "1 problem: 1 held for too long; 3 locks held by 5, 2 waiting, 1 process"},
		{reportOf(critical, warning, warning), 2, "3 problems: 2 held for too long, 1 without an end; 3 locks held by 5, 2 waiting, 1 process"},
		{reportOf(inspect.Problem{Kind: "news"}), 1, "1 problem: 1 news; 3 locks held by 5, 2 waiting, 1 process"}, // of a later version
	} {
		if verdict(c.r) != c.code || summary(c.r) != c.text {
			t.Errorf("%d %q, want %d %q", verdict(c.r), summary(c.r), c.code, c.text)
		}
	}
}

// The metrics are in the format, whatever names there are: no label has a quote or
// an end of line as it is, none is not UTF-8, and no series comes twice.
func TestMetrics(t *testing.T) {
	named := func(kind, name string) inspect.Problem {
		return inspect.Problem{Kind: kind, Lock: inspect.Lock{Name: name}}
	}
	circle := inspect.Problem{Kind: "deadlock", Critical: true, Deadlock: &inspect.Deadlock{Members: []inspect.DeadlockMember{{Name: "a"}, {Name: "b"}}}}
	r := reportOf(circle, named("held", "q\"\\\nx\xff"), named("held", "twice"), named("held", "twice"), named("held", "q\"\\\nx\xfe"))
	got := string(metrics(r, `p"`, time.UnixMilli(1700000000123)))
	for _, want := range []string{
		"# HELP zamok_locks_held Locks that are held, and semaphores of which a permit is.\n# TYPE zamok_locks_held gauge\nzamok_locks_held{prefix=\"p\\\"\"} 3\n",
		"zamok_holders{prefix=\"p\\\"\"} 5\n",
		"zamok_waiters{prefix=\"p\\\"\"} 2\n",
		"zamok_processes{prefix=\"p\\\"\"} 1\n",
		"zamok_processes_silent{prefix=\"p\\\"\"} 1\n",
		"zamok_longest_hold_seconds{prefix=\"p\\\"\"} 90\n",
		"zamok_longest_wait_seconds{prefix=\"p\\\"\"} 1.5\n",
		"zamok_problems{prefix=\"p\\\"\",kind=\"deadlock\"} 1\nzamok_problems{prefix=\"p\\\"\",kind=\"held\"} 4\nzamok_problems{prefix=\"p\\\"\",kind=\"no-ttl\"} 0\n",
		"zamok_problem{prefix=\"p\\\"\",kind=\"deadlock\",lock=\"a\",critical=\"true\"} 1\nzamok_problem{prefix=\"p\\\"\",kind=\"deadlock\",lock=\"b\",critical=\"true\"} 1\n",
		"zamok_problem{prefix=\"p\\\"\",kind=\"held\",lock=\"q\\\"\\\\\\nx\uFFFD\",critical=\"false\"} 1\n",
		"zamok_check_timestamp_seconds{prefix=\"p\\\"\"} 1700000000.123\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(got) {
		series := line[:strings.LastIndexByte(line, ' ')]
		if seen[series] && !strings.HasPrefix(line, "#") {
			t.Errorf("twice: %s", line)
		}
		seen[series] = true
	}
	if plain := string(metrics(reportOf(), "", time.Now())); !strings.Contains(plain, "\nzamok_locks_held 3\n") {
		t.Errorf("without a prefix:\n%s", plain)
	}
}

func TestMetricsAreBounded(t *testing.T) {
	var many []inspect.Problem
	for n := range 10 * mostSeries {
		many = append(many, inspect.Problem{Kind: "held", Lock: inspect.Lock{Name: fmt.Sprint(n)}})
	}
	got := string(metrics(reportOf(many...), "", time.Now()))
	if n := strings.Count(got, "\nzamok_problem{"); n != mostSeries {
		t.Errorf("%d locks are named, want %d", n, mostSeries)
	}
	if !strings.Contains(got, fmt.Sprintf("zamok_problems{kind=\"held\"} %d\n", 10*mostSeries)) {
		t.Errorf("not all are counted:\n%s", got)
	}
	var b bytes.Buffer
	(&checkFlags{}).printReport(&b, reportOf(many...))
	if n := strings.Count(b.String(), "\n"); n != mostLines+2 {
		t.Errorf("%d lines, want %d", n, mostLines+2)
	}
}

// A reader sees the old file or the new one, also when writing fails, and nothing is
// left beside it.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "zamok.prom")
	for _, text := range []string{"old\n", "new\n"} {
		if err := replaceFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil || string(b) != text {
			t.Errorf("%q, %v; want %q", b, err, text)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, "folder"), nil); err == nil {
		t.Error("a folder was replaced")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(link, nil); err == nil {
		t.Error("a link, as /dev/stdout is one, was replaced")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

// What is to be typed reaches the program as it is. Where a shell of the oldest
// kind would not do, it is a shell that knows $'…'.
func TestShellWord(t *testing.T) {
	for _, text := range []string{"nightly", "a b", "it's", "", "$(reboot)", "`x`", "*", `back\slash`, `"`, "ж"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellWord(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q became %q: %s, %v", text, shellWord(text), out, err)
		}
	}
	for text, want := range map[string]string{"a|b": `$'a\x7cb'`, "it's\n": `$'it\'s\n'`, "\x1b[m": `$'\x1b[m'`, "nightly": "nightly", `q"|`: `$'q\"\x7c'`} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestCheckAdvice(t *testing.T) {
	f := &checkFlags{}
	for _, c := range []struct {
		prefix string
		l      inspect.Lock
		want   string
	}{
		{"", inspect.Lock{Name: "a", Key: "lock:a"}, " a"},
		{"app:", inspect.Lock{Name: "a", Key: "app:lock:a"}, " --prefix app: a"},
		{"", inspect.Lock{Name: "-n", Key: "lock:-n"}, " -- -n"},
		{"", inspect.Lock{Name: "a", Key: "old key"}, " --key 'old key'"},
		{"", inspect.Lock{Name: "a", Key: "old:lock:a"}, " --key old:lock:a"}, // not the lock of that name
	} {
		f.server.prefix = c.prefix
		if got := f.argument(c.l); got != c.want {
			t.Errorf("%+v: %q, want %q", c.l, got, c.want)
		}
	}
	f.server.prefix = ""
	for _, kind := range []string{"held", "waited", "no-ttl", "silent", "late", "deadlock", "unreadable", "news"} {
		if got := f.advice(inspect.Problem{Kind: kind, Lock: inspect.Lock{Name: "a", Key: "lock:a"}}); !strings.HasPrefix(got, "zamok show a") {
			t.Errorf("%s: %s", kind, got)
		}
		if got := f.advice(inspect.Problem{Kind: kind, Lock: inspect.Lock{Name: "-n", Key: "lock:-n"}}); !strings.HasSuffix(got, " -- -n") {
			t.Errorf("%s: flags stand behind the --: %s", kind, got)
		}
	}
}

func TestCheckUnknownKeepsMistakes(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	a := newApp(null, null, null)
	defer a.talk.close()
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0}, {usage("h", "x"), 64}, {&interrupted{2}, 130}, {errors.New("x"), 3}, {&failure{code: 77, err: errors.New("x")}, 3},
	} {
		got := 0
		if err := a.unknown(&checkFlags{}, c.err); err != nil {
			got = explain(err).code
		}
		if got != c.code {
			t.Errorf("%v: code %d, want %d", c.err, got, c.code)
		}
	}
}
