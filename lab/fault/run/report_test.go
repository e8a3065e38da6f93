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
		Plan: Plan{Deployment: "aof", Faults: kept, Seed: 7}, Injected: map[string]int{"reset": 3, "delay": 1},
		Checked: &validate.Report{Operations: 100, HandedOver: 20, Unknown: 2, LongestStall: 1500 * time.Microsecond},
	}
	more := &Result{
		Plan: Plan{Deployment: "aof", Faults: kept, Seed: 9}, Injected: map[string]int{"reset": 1},
		Checked: &validate.Report{Operations: 11, LongestOrphan: time.Second},
		Stale:   6, Faulty: []validate.Violation{{Property: validate.Fences}},
	}
	expected := &Result{
		Plan:     Plan{Deployment: "single", Faults: []string{"flush-all"}, Seed: 8, Expect: overlap},
		Injected: map[string]int{"flush-all": 5}, Checked: &validate.Report{Operations: 50},
		Expected: map[validate.Property]int{validate.Exclusion: 4},
	}
	return &series{Results: []*Result{promised, expected, more}, NotHere: map[string]error{"spaces": errors.New("no right")}}
}

func TestTable(t *testing.T) {
	got := results().table()
	for _, want := range []string{
		"| aof | 2 | 111 | 5 | 20 | 2 | 6 | 2ms | 1s | 1 | 0 |\n",
		"| single: flush-all | 1 | 50 | 5 | 0 | 0 | 0 | 0s | 0s | 0 | 4 |\n",
		"| **all** | 3 | 161 | 10 | 20 | 2 | 6 | 2ms | 1s | 1 | 4 |\n",
		"| reset | 4 |\n",
		"Seeds: 7, 8, 9.\n",
		"spaces was left out: no right.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	if results().ok() {
		t.Error("a violation is not told")
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
