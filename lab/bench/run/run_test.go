package run

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/lab/bench/page"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// TestMain lets the test be the processes that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == unitArg || os.Args[1] == scene.WorkerArg) {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestQuick plays one scenario with all lockers in one process, and one with processes.
func TestQuick(t *testing.T) {
	for _, name := range []string{scene.Cycle, scene.Processes} {
		var said bytes.Buffer
		root := t.TempDir()
		if code := Main([]string{"-quick", "-root", root, "-only", "^" + name + "$"}, nil, &said, &said); code != 0 {
			t.Errorf("%s: exit %d:\n%s", name, code, &said)
		}
		if !strings.Contains(said.String(), "left") {
			t.Errorf("no progress is told: %s", &said)
		}
		if files, _ := os.ReadDir(root); len(files) > 0 {
			t.Errorf("a quick run wrote %v", files)
		}
	}
}

// Every locker of a scenario gives the figures that the tables show.
func TestAUnitGivesFigures(t *testing.T) {
	u := scene.Unit{Scenario: scene.Cycle, Lockers: []string{"scripts/goredis", "zamok/rueidis", "redsync/goredis"}, Rep: 1, Quick: true}
	s, err := scene.Find(u.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	r := &race{say: &bytes.Buffer{}}
	samples, err := r.process(t.Context(), u, s.Limit)
	if err != nil {
		t.Fatal(err)
	}
	d := &result.Data{}
	d.Add(u.Scenario, 1, samples)
	for _, l := range u.Lockers {
		for _, metric := range []string{"µs", "server µs", "commands", "requests", "allocations"} {
			if got := d.Spread(u.Scenario, l, metric, 0); got.N != 1 || got.Median <= 0 {
				t.Errorf("%s has %+v %s", l, got, metric)
			}
		}
		if got := d.Spread(u.Scenario, l, "requests", 0).Median; got != 2 {
			t.Errorf("%s: %v requests a cycle", l, got)
		}
	}
}

func TestAProcessIsEnded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for what failed processes said
	r := &race{root: t.TempDir(), say: &bytes.Buffer{}}
	u := scene.Unit{Scenario: scene.Line, Lockers: []string{"zamok/goredis"}, Rep: 1}
	if _, err := r.process(t.Context(), u, 1); err == nil || !strings.Contains(err.Error(), "not done within") {
		t.Errorf("after its limit: %v", err)
	}
	if _, err := r.process(t.Context(), scene.Unit{Scenario: "unknown"}, scene.All()[0].Limit); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("of a scenario that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.play(ctx, regexp.MustCompile(scene.Cycle)); err == nil {
		t.Error("it went on when it was interrupted")
	}
}

// TestNone writes what people read from what is kept, and nothing else.
func TestNone(t *testing.T) {
	r := &race{root: t.TempDir()}
	for _, name := range []string{r.file("README.md"), r.file("docs", "performance.md"), r.results()} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("# Title\n"+page.Begin+"\n"+page.End+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := &result.Data{Runs: map[string]result.About{scene.Line: {Date: "2030-01-02"}}}
	d.Add(scene.Line, 1, []scene.Sample{{Locker: "zamok/goredis", Metric: "acquisitions/s", Value: 600_000}})
	if err := d.Save(r.results()); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := Main([]string{"-none", "-root", r.root}, nil, &said, &said); code != 0 {
		t.Fatalf("exit %d: %s", code, &said)
	}
	for _, name := range []string{"README.md", "docs/performance.md"} {
		text, err := os.ReadFile(r.file(name))
		if err != nil || !strings.Contains(string(text), "600,000") || !strings.HasPrefix(string(text), "# Title\n") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	for _, bad := range [][]string{{"-only", "("}, {"word"}, {"-no-such-flag"}} {
		if code := Main(bad, nil, &said, &said); code != 2 {
			t.Errorf("%q: exit %d", bad, code)
		}
	}
}

// Lockers follow each other within a repetition, and each repetition begins with another.
func TestRepetitionsAreInterleaved(t *testing.T) {
	r := &race{}
	s, err := scene.Find(scene.HandOver)
	if err != nil {
		t.Fatal(err)
	}
	first := make(map[string]bool)
	last := 0
	for _, u := range r.units(s) {
		if u.Rep < last || u.Rep > last+1 {
			t.Fatalf("repetition %d behind %d", u.Rep, last)
		}
		if u.Rep > last {
			first[u.Lockers[0]] = true
		}
		last = u.Rep
	}
	if last != s.Reps || len(first) != s.Reps {
		t.Errorf("%d repetitions begin with %v", last, first)
	}
}
