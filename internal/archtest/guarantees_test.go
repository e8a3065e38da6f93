package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// testName finds the tests that a document names.
var testName = regexp.MustCompile("`(Test\\w+)`")

// unknownTests returns complaints about tests that a document names and nobody has.
func unknownTests(name, text string, tests map[string]bool) []string {
	var complaints []string
	for _, m := range testName.FindAllStringSubmatch(text, -1) {
		if !tests[m[1]] {
			complaints = append(complaints, fmt.Sprintf("%s names %s, which is no test of this repository", name, m[1]))
		}
	}
	return complaints
}

// guaranteesHead begins the table of what is promised; its last column says by which
// tests that is known.
const guaranteesHead = "| deployment | fault |"

// untried returns complaints about what a table promises without the name of a test.
func untried(text string) []string {
	_, table, found := strings.Cut(text, guaranteesHead)
	if !found {
		return []string{"no table of guarantees"}
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var complaints []string
	for i, row := range strings.Split(strings.TrimSpace(table), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		if i > 1 && !testName.MatchString(cells[len(cells)-1]) { // below the head and the line under it
			complaints = append(complaints, fmt.Sprintf("the guarantee of %s names no test", row))
		}
	}
	return complaints
}

// TestGuaranteesAreTried: whoever reads that something holds can look how that is known,
// and a test that is renamed takes its name in the documents with it.
func TestGuaranteesAreTried(t *testing.T) {
	tests := make(map[string]bool)
	for _, f := range goFiles(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() && fn.Recv == nil {
				tests[fn.Name.Name] = true
			}
		}
	}
	for _, name := range repoFiles(t, ".md") {
		report(t, unknownTests(name, read(t, name), tests))
	}
	report(t, untried(read(t, "docs/guarantees.md")))

	const table = guaranteesHead + " known from |\n|---|---|---|\n"
	for text, bad := range map[string]bool{
		table + "| any | crash | `TestOne` |\n":                         false,
		table + "| any | crash | faults, `TestOne` |\n\n| a | b | c |":  false,
		table + "| any | `TestOne` crashes | design |\n":                true,
		table + "| any | crash | `TestOne` |\n| any | hang | tests |\n": true,
		"no table": true,
	} {
		if got := untried(text); (len(got) > 0) != bad {
			t.Errorf("%q: complaints %q, want some: %v", text, got, bad)
		}
	}
	for text, bad := range map[string]bool{"`TestOne`": false, "`TestTwo`": true, "TestTwo": false} {
		if got := unknownTests("a.md", text, map[string]bool{"TestOne": true}); (len(got) > 0) != bad {
			t.Errorf("%q: complaints %q, want some: %v", text, got, bad)
		}
	}
}
