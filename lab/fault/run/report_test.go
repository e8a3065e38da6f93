package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/lab/fault/validate"
)

func results() *series {
	promised := &Result{
		Plan: Plan{Deployment: "aof", Faults: kept, Seed: 7}, Injected: map[string]int{"reset": 3, "delay": 1}, Server: "Redis 8",
		Checked: &validate.Report{
			Operations: 100, Holds: 40, HandedOver: 20, Unknown: 2, LongestStall: 1500 * time.Microsecond,
			Waits: validate.Judged{Judged: 3, All: 4}, Places: validate.Judged{Judged: 1, All: 2},
		},
	}
	more := &Result{
		Plan: Plan{Deployment: "aof", Faults: kept, Seed: 9}, Injected: map[string]int{"reset": 1}, Server: "Redis 8",
		Checked: &validate.Report{Operations: 11, LongestOrphan: time.Second, Waits: validate.Judged{Judged: 1, All: 1}},
		Stale:   6, Faulty: []validate.Violation{{Property: validate.Fences}},
	}
	expected := &Result{
		Plan:     Plan{Deployment: "single", Faults: []string{"flush-all"}, Seed: 8, Expect: overlap},
		Injected: map[string]int{"flush-all": 5}, Checked: &validate.Report{Operations: 50}, Server: "Redis 8",
		Expected: map[validate.Property]int{validate.Exclusion: 4},
	}
	return &series{Results: []*Result{promised, expected, more}, NotHere: map[string]error{"spaces": errors.New("no right")}, Seeded: 3, Caught: 3}
}

func TestReport(t *testing.T) {
	got := results().report(about{Command: "play", Revision: "v1", Machine: "go1", Started: time.Now()})
	for _, want := range []string{
		"| deployment | campaigns | operations checked |",
		"| aof | 2 | 111 | 5 | 40 | 20 | 2 | 6 | 4 of 5 | 1 of 2 | 2ms | 1s | 1 | 0 |\n",
		"| single: flush-all | 1 | 50 | 5 | 0 | 0 | 0 | 0 | 0 of 0 | 0 of 0 | 0s | 0s | 0 | 4 |\n",
		"| **all** | 3 | 161 | 10 | 40 | 20 | 2 | 6 | 4 of 5 | 1 of 2 | 2ms | 1s | 1 | 4 |\n",
		"| reset | 4 |\n",
		"Seeds: 7 to 9.\n",
		"Seeded bugs caught: 3/3.\n",
		"spaces was left out: no right.",
		"zamok at v1 on Redis 8, go1; ",
		"in the folder lab: `play`.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

func TestSpans(t *testing.T) {
	for want, numbers := range map[string][]uint64{"": nil, "4": {4}, "1 to 3, 5, 8 to 9": {9, 3, 1, 2, 8, 5, 5}} {
		if got := spans(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}

// What was not promised, was not seen, or could not be played is not well.
func TestOK(t *testing.T) {
	well := func(s *series) *series { s.Results = s.Results[:2]; return s }
	if !well(results()).ok() {
		t.Error("all is well and is not told")
	}
	missed := well(results())
	missed.Caught--
	if missed.ok() || results().ok() {
		t.Error("a flaw that was missed, or a violation, is not told")
	}
}

func TestFiguresInTheDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.md")
	if err := os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, figures := range []string{"one\n", "two\n"} {
		if err := into(file, figures); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := os.ReadFile(file)
	if want := "before\n" + begin + "\ntwo\n\n" + end + "after\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := into(os.DevNull, "x"); err == nil {
		t.Error("a document without marks was written")
	}
}
