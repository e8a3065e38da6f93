package run

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// row is what campaigns of one deployment add up to.
type row struct {
	campaigns, faults, operations, handedOver, unknown, stale, undecided int
	violations, expected                                                 int
	stall, orphan                                                        time.Duration
}

func (w *row) add(r *Result) {
	w.campaigns++
	w.faults += sum(r.Injected)
	w.operations += r.Checked.Operations
	w.handedOver += r.Checked.HandedOver
	w.unknown += r.Checked.Unknown
	w.stale += r.Stale
	w.undecided += r.Checked.Undecided
	w.violations += len(r.Faulty)
	w.expected += sum(r.Expected)
	w.stall = max(w.stall, r.Checked.LongestStall)
	w.orphan = max(w.orphan, r.Checked.LongestOrphan)
}

const head = `| deployment | campaigns | operations checked | faults | hand-overs | unknown outcomes | stale writes refused | longest stall | longest orphan | violations | expected violations |
|---|---|---|---|---|---|---|---|---|---|---|
`

func (w *row) line(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %v | %v | %d | %d |\n", name, w.campaigns, w.operations, w.faults,
		w.handedOver, w.unknown, w.stale, w.stall.Round(time.Millisecond), w.orphan.Round(time.Millisecond), w.violations, w.expected)
}

// table is the report, in Markdown.
func (s *series) table() string {
	var b strings.Builder
	rows, faults := make(map[string]*row), make(map[string]int)
	var all row
	var names, seeds []string
	for _, r := range s.Results {
		name := r.Plan.Deployment
		if !slices.Equal(r.Plan.Faults, kept) {
			name += ": " + strings.Join(r.Plan.Faults, ", ")
		}
		if rows[name] == nil {
			rows[name] = new(row)
			names = append(names, name)
		}
		rows[name].add(r)
		all.add(r)
		seeds = append(seeds, fmt.Sprint(r.Plan.Seed))
		for f, n := range r.Injected {
			faults[f] += n
		}
	}
	b.WriteString(head)
	for _, name := range names {
		b.WriteString(rows[name].line(name))
	}
	b.WriteString(all.line("**all**"))
	b.WriteString("\n| fault | injected |\n|---|---|\n")
	for _, f := range slices.Sorted(maps.Keys(faults)) {
		fmt.Fprintf(&b, "| %s | %d |\n", f, faults[f])
	}
	fmt.Fprintf(&b, "\nSeeds: %s.\n", strings.Join(seeds, ", "))
	if all.undecided > 0 {
		fmt.Fprintf(&b, "\nOf %d names the search for an order took too long.\n", all.undecided)
	}
	for _, name := range slices.Sorted(maps.Keys(s.NotHere)) {
		fmt.Fprintf(&b, "\nDeployment %s was left out: %v.\n", name, s.NotHere[name])
	}
	return b.String()
}

const (
	begin = "<!-- figures of a run: begin -->\n"
	end   = "<!-- figures of a run: end -->\n"
)

// into writes the report between the marks of a document.
func into(file, report string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s lacks the marks between which figures stand", file)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+report+"\n"+end+after), 0o644)
}
