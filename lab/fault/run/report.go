package run

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/fault/validate"
)

// row is what campaigns of one deployment add up to.
type row struct {
	campaigns, faults, operations, leases, handedOver, unknown, stale, undecided int
	violations, expected                                                         int
	waits, places                                                                validate.Judged
	stall, orphan                                                                time.Duration
}

func (w *row) add(r *Result) {
	w.campaigns++
	w.faults += sum(r.Injected)
	w.operations += r.Checked.Operations
	w.leases += r.Checked.Holds
	w.handedOver += r.Checked.HandedOver
	w.unknown += r.Checked.Unknown
	w.stale += r.Stale
	w.undecided += r.Checked.Undecided
	w.violations += len(r.Faulty)
	w.expected += sum(r.Expected)
	w.waits.Add(r.Checked.Waits)
	w.places.Add(r.Checked.Places)
	w.stall = max(w.stall, r.Checked.LongestStall)
	w.orphan = max(w.orphan, r.Checked.LongestOrphan)
}

// columns are the table's, and what each says of a row.
var columns = []struct {
	name string
	cell func(*row) any
}{
	{"campaigns", func(w *row) any { return w.campaigns }},
	{"operations checked", func(w *row) any { return w.operations }},
	{"faults", func(w *row) any { return w.faults }},
	{"leases", func(w *row) any { return w.leases }},
	{"hand-overs", func(w *row) any { return w.handedOver }},
	{"unknown outcomes", func(w *row) any { return w.unknown }},
	{"stale writes refused", func(w *row) any { return w.stale }},
	{"waits judged", func(w *row) any { return w.waits }},
	{"places judged", func(w *row) any { return w.places }},
	{"longest stall", func(w *row) any { return w.stall.Round(time.Millisecond) }},
	{"longest orphan", func(w *row) any { return w.orphan.Round(time.Millisecond) }},
	{"violations", func(w *row) any { return w.violations }},
	{"expected violations", func(w *row) any { return w.expected }},
}

func (w *row) line(name string) string {
	text := "| " + name + " |"
	for _, c := range columns {
		text += fmt.Sprintf(" %v |", c.cell(w))
	}
	return text + "\n"
}

// head is the table's.
func head() string {
	names, rule := "| deployment |", "|---|"
	for _, c := range columns {
		names += " " + c.name + " |"
		rule += "---|"
	}
	return names + "\n" + rule + "\n"
}

// report is what was found, in Markdown.
func (s *series) report(about about) string {
	var b strings.Builder
	rows, faults := make(map[string]*row), make(map[string]int)
	var all row
	var names, servers []string
	var seeds []uint64
	for _, r := range s.Results {
		name := r.Plan.Deployment
		if !slices.Equal(r.Plan.Faults, kept) {
			name += ": " + strings.Join(r.Plan.Faults, ", ")
		}
		if r.Plan.TTL != 0 {
			name += fmt.Sprint(", leases of ", r.Plan.TTL)
		}
		if rows[name] == nil {
			rows[name] = new(row)
			names = append(names, name)
		}
		rows[name].add(r)
		all.add(r)
		seeds = append(seeds, r.Plan.Seed)
		if r.Server != "" { // only its history was checked
			servers = append(servers, r.Server)
		}
		for f, n := range r.Injected {
			faults[f] += n
		}
	}
	if len(names) > 0 {
		b.WriteString(head())
		for _, name := range names {
			b.WriteString(rows[name].line(name))
		}
		b.WriteString(all.line("**all**") + "\n")
		b.WriteString("| fault | injected |\n|---|---|\n")
		for _, f := range slices.Sorted(maps.Keys(faults)) {
			fmt.Fprintf(&b, "| %s | %d |\n", f, faults[f])
		}
		fmt.Fprintf(&b, "\nSeeds: %s.\n\n", spans(seeds))
	}
	if s.Seeded > 0 {
		fmt.Fprintf(&b, "Seeded bugs caught: %d/%d.\n\n", s.Caught, s.Seeded)
	}
	if all.undecided > 0 {
		fmt.Fprintf(&b, "Of %d names the search for an order took too long.\n\n", all.undecided)
	}
	for _, name := range slices.Sorted(maps.Keys(s.NotHere)) {
		fmt.Fprintf(&b, "Deployment %s was left out: %v.\n\n", name, s.NotHere[name])
	}
	slices.Sort(servers)
	b.WriteString(about.text(slices.Compact(servers)))
	return b.String()
}

// spans lists numbers, those that follow each other by the first and the last.
func spans(numbers []uint64) string {
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var list []string
	for i := 0; i < len(numbers); {
		first := i
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; i++ {
		}
		text := fmt.Sprint(numbers[first])
		if i-first > 1 {
			text += fmt.Sprintf(" to %d", numbers[i-1])
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
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
