package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// view is how the figures of a scenario are shown: a column each, or where it was played
// with several numbers a table each.
type view struct {
	scenario string
	metrics  []string
}

// views are all: a metric that is not in them is kept, and not shown.
func views() []view {
	return []view{
		{scene.Cycle, []string{"µs", "server µs", "commands", "requests", "allocations"}},
		{scene.Busy, []string{"cycles/s", "server µs"}},
		{scene.HandOver, []string{"p50 µs", "p99 µs", "longest wait s", "fewest", "most", "jain", "commands", "requests"}},
		{scene.Crowd, []string{"p50 µs", "p99 µs", "acquisitions/s", "commands", "requests", "jain", "server µs"}},
		{scene.Line, []string{"acquisitions/s"}},
		{scene.Idle, []string{"idle commands/s", "idle requests/s", "presence/s", "pings/s", "idle server %"}},
		{scene.Growth, []string{"p50 µs", "p99 µs", "commands", "requests", "server µs", "idle requests/s", "idle server %"}},
		{scene.Held, []string{"locks", "goroutines", "bytes", "s to take", "% of a core", "server %", "lost"}},
		{scene.HeldMany, []string{"locks", "goroutines", "bytes", "s to take", "% of a core", "server %", "lost"}},
		{scene.CutOff, []string{"overlap ms", "stops before ms", "next after s"}},
		{scene.Hung, []string{"lock ms", "slowest lock ms", "release ms", "slowest release ms"}},
		{scene.Distance, []string{"ms", "p50 ms", "p99 ms", "acquisitions/s"}},
		{scene.Processes, []string{"cycles/s", "acquisitions/s", "jain of processes"}},
		{scene.Semaphores, []string{"permit µs", "permit server µs", "acquisitions/s", "longest wait ms"}},
		{scene.Readers, []string{"reader µs", "reader server µs", "writer µs", "writer server µs", "acquisitions/s", "longest wait ms"}},
	}
}

// words say what a metric is, where its name does not.
func words(scenario, metric string) string {
	switch {
	case metric == "µs":
		return "µs a cycle"
	case metric == "ms":
		return "ms a cycle"
	case metric == "server µs" && (scenario == scene.Cycle || scenario == scene.Busy):
		return "server's processor, µs a cycle"
	case metric == "server µs":
		return "server's processor, µs an acquisition"
	case metric == "commands" || metric == "requests" || metric == "allocations":
		if scenario == scene.Cycle {
			return metric + " a cycle"
		}
		return metric + " an acquisition"
	case strings.HasPrefix(metric, "p50 ") || strings.HasPrefix(metric, "p99 "):
		return "release → another holds, " + metric
	case metric == "goroutines" || metric == "bytes":
		return metric + " a lock"
	case metric == "jain" || metric == "jain of processes":
		return strings.Replace(metric, "jain", "Jain's index", 1)
	}
	return metric
}

// Full is all that was measured, for docs/performance.md. Plots are linked from there.
func Full(d *result.Data) string {
	if len(d.Runs) == 0 {
		return nothing
	}
	var b strings.Builder
	surroundings(&b, d)
	b.WriteString("### Targets\n\nA ratio is of two figures of one repetition. A verdict is undecided when the quartiles lie on both sides of the target.\n\n")
	b.WriteString(Verdicts(d))
	for _, s := range scene.All() {
		if _, ok := d.Runs[s.Name]; !ok {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", title(s.Name), s.About)
		i := slices.IndexFunc(views(), func(v view) bool { return v.scenario == s.Name })
		if v := views()[i]; len(s.Xs) > 1 {
			byX(&b, d, s, v)
		} else {
			byMetric(&b, d, s, v)
		}
		failures(&b, d, s)
		if name, ok := plots()[s.Name]; ok {
			fmt.Fprintf(&b, "![%s](../lab/bench/results/%s)\n\n", name.title, name.file)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// title is a heading of a name.
func title(name string) string {
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", " ")
}

// byMetric has a row for each locker and a column for each metric.
func byMetric(b *strings.Builder, d *result.Data, s scene.Scenario, v view) {
	head := []string{""}
	for _, m := range v.metrics {
		head = append(head, words(s.Name, m))
	}
	var rows [][]string
	for _, k := range locker.All() {
		row, known := []string{result.Library(k.Name)}, false
		for _, m := range v.metrics {
			x := 0
			if len(s.Xs) == 1 {
				x = s.Xs[0]
			}
			f := d.Spread(s.Name, k.Name, m, x)
			known = known || f.N > 0
			row = append(row, spread(f))
		}
		if known {
			rows = append(rows, row)
		}
	}
	table(b, head, rows)
}

// byX has a table for each metric, with a column for each number that it was played with.
func byX(b *strings.Builder, d *result.Data, s scene.Scenario, v view) {
	for _, m := range v.metrics {
		xs := d.Xs(s.Name, m)
		head := []string{words(s.Name, m) + ", by " + s.X}
		for _, x := range xs {
			head = append(head, number(float64(x), 0))
		}
		var rows [][]string
		for _, k := range locker.All() {
			row, known := []string{result.Library(k.Name)}, false
			for _, x := range xs {
				f := d.Spread(s.Name, k.Name, m, x)
				known = known || f.N > 0
				row = append(row, spread(f))
			}
			if known {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			table(b, head, rows)
		}
	}
}

// failures tells what could not be measured: a library that does not get done is a result
// too, and the medians beside it are without it.
func failures(b *strings.Builder, d *result.Data, s scene.Scenario) {
	for _, f := range d.Failures {
		if f.Scenario == s.Name {
			at := ""
			if f.X > 0 {
				at = fmt.Sprintf(", %s %s", number(float64(f.X), 0), s.X)
			}
			fmt.Fprintf(b, "- %s%s, repetition %d: %s\n", result.Library(f.Locker), at, f.Rep, f.Error)
		}
	}
	if slices.ContainsFunc(d.Failures, func(f result.Failure) bool { return f.Scenario == s.Name }) {
		b.WriteString("\n")
	}
}

// surroundings says where and when, once for all scenarios that were played alike.
func surroundings(b *strings.Builder, d *result.Data) {
	var said []string
	of := make(map[string][]string)
	for _, s := range scene.All() {
		a, ok := d.Runs[s.Name]
		if !ok {
			continue
		}
		var libraries []string
		for name, version := range a.Libraries {
			libraries = append(libraries, name+" "+version)
		}
		slices.Sort(libraries)
		text := fmt.Sprintf("%s: %s, %d cores, %s; %s; %s; %s; zamok at %s.", a.Date, a.Machine, a.CPUs, a.System, a.Server, a.Go, strings.Join(libraries, ", "), a.Commit)
		if _, ok := of[text]; !ok {
			said = append(said, text)
		}
		of[text] = append(of[text], s.Name)
	}
	for _, text := range said {
		if len(said) > 1 {
			text += " This is of: " + strings.Join(of[text], ", ") + "."
		}
		b.WriteString(text + "\n\n")
	}
}
