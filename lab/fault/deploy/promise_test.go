package deploy_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/faults"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// columns splits a row of a table.
func columns(line string) (cells []string) {
	for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(c))
	}
	return cells
}

// What is promised here is what the document says: each Promise has its row, and
// denies what the row denies.
func TestPromisesAreThoseOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range deploy.Promises {
		found := false
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "| "+p.Row) {
				continue
			}
			found = true
			cells := columns(strings.TrimSpace(line))
			for property, cell := range map[validate.Property]string{validate.Exclusion: cells[2], validate.Fences: cells[3]} {
				if denied := strings.HasPrefix(cell, "**"); denied != slices.Contains(p.Broken, property) {
					t.Errorf("%s: of %q the document says %q, the table here %v", p.Row, property, cell, p.Broken)
				}
			}
			if !strings.Contains(cells[len(cells)-1], "[faults](faults.md)") {
				t.Errorf("%s: the document does not say that it is tried", p.Row)
			}
			break
		}
		if !found {
			t.Errorf("docs/guarantees.md has no row that begins with %q", p.Row)
		}
	}
}

// Every fault is tried somewhere, and nothing is promised of what does not exist.
func TestEveryFaultHasItsPromise(t *testing.T) {
	var named []string
	for _, p := range deploy.Promises {
		for _, k := range p.Kinds {
			if _, err := deploy.KindOf(k); err != nil {
				t.Error(err)
			}
		}
		if _, err := faults.Named(p.Faults...); err != nil {
			t.Error(err)
		}
		named = append(named, p.Faults...)
	}
	for _, f := range faults.All {
		if !slices.Contains(named, f.Name) {
			t.Errorf("fault %s is tried nowhere", f.Name)
		}
	}
}
