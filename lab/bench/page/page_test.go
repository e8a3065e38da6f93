package page

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// played has figures of every scenario, locker and number.
func played() *result.Data {
	d := &result.Data{Runs: make(map[string]result.About)}
	for i, s := range scene.All() {
		d.Runs[s.Name] = result.About{Date: "2030-01-02", Machine: "a <machine>", CPUs: 2}
		xs := s.Xs
		if len(xs) == 0 {
			xs = []int{0}
		}
		if s.Name == scene.HandOver {
			for rank := 1; rank <= 16; rank++ {
				d.Add(s.Name, 1, []scene.Sample{{Locker: "zamok/goredis", Metric: "share", X: rank, Value: 2 / float64(rank)}})
			}
		}
		for _, v := range views() {
			for _, metric := range v.metrics {
				for _, k := range locker.All() {
					for _, x := range xs {
						if v.scenario == s.Name && s.Plays(k, x) {
							d.Add(s.Name, 1, []scene.Sample{{Locker: k.Name, Metric: metric, X: x, Value: float64(1000 + i + x)}})
						}
					}
				}
			}
		}
	}
	d.Failures = []result.Failure{{Scenario: scene.Held, Locker: "rueidislock/rueidis", Rep: 3, Error: "not done within 2m0s"}}
	return d
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		value  float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {1234567, 0, "1,234,567"},
		{1234.56, 1, "1,234.6"}, {-1234, 0, "-1,234"}, {0.25, 2, "0.25"}, {math.NaN(), 1, "–"},
	} {
		if got := number(c.value, c.digits); got != c.want {
			t.Errorf("%v with %d digits: %q, want %q", c.value, c.digits, got, c.want)
		}
	}
	for want, s := range map[string]result.Spread{
		"–":                 result.SpreadOf(nil),
		"5.00":              result.SpreadOf([]float64{5, 5, 5}),
		"2.00 (1.00–3.00)":  result.SpreadOf([]float64{1, 2, 3}),
		"1,000 (900–1,100)": result.SpreadOf([]float64{900, 1000, 1100}),
	} {
		if got := spread(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestReplaceKeepsTheRest(t *testing.T) {
	document := "before\n" + Begin + "\nold\n" + End + "\nafter\n"
	changed, err := Replace(document, "new\n")
	if want := "before\n" + Begin + "\nnew\n" + End + "\nafter\n"; changed != want || err != nil {
		t.Errorf("%q, %v", changed, err)
	}
	again, err := Replace(changed, "new\n")
	if again != changed || err != nil {
		t.Errorf("the second time: %q, %v", again, err)
	}
	if _, err := Replace("no marks", "new"); err == nil {
		t.Error("no error without marks")
	}
}

// Every metric of a view is one that its scenario's lockers have, and every row of a
// table has as many cells as its head.
func TestTables(t *testing.T) {
	for name, text := range map[string]string{"short": Short(played()), "full": Full(played()), "verdicts": Verdicts(played())} {
		cells := 0
		for row := range strings.Lines(text) {
			switch n := strings.Count(row, "|"); {
			case n == 0:
				cells = 0
			case cells == 0:
				cells = n
			case n != cells:
				t.Errorf("%s: %d cells below a head of %d: %s", name, n-1, cells-1, row)
			}
		}
		if !strings.Contains(text, "|---|") {
			t.Errorf("%s has no table:\n%s", name, text)
		}
	}
	full := Full(played())
	for _, s := range scene.All() {
		if !strings.Contains(full, "### "+title(s.Name)) || !strings.Contains(full, s.About) {
			t.Errorf("%s is not in the full table", s.Name)
		}
	}
	for _, want := range []string{"not done within 2m0s", "handover.svg", "fairness.svg", "| rueidislock |", "| bare scripts, go-redis |"} {
		if !strings.Contains(full, want) {
			t.Errorf("the full table lacks %q", want)
		}
	}
	empty := &result.Data{}
	if Short(empty) != nothing || Full(empty) != nothing {
		t.Error("tables of nothing")
	}
	Verdicts(empty)
}

func TestPlots(t *testing.T) {
	dir := t.TempDir()
	if err := Plots(played(), dir); err != nil {
		t.Fatal(err)
	}
	for _, as := range plots() {
		text, err := os.ReadFile(filepath.Join(dir, as.file))
		if err != nil {
			t.Fatal(err)
		}
		circles := 0
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", as.file, err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
				circles++
			}
		}
		if circles < 16 {
			t.Errorf("%s has %d points", as.file, circles)
		}
		if strings.Contains(string(text), "NaN") || strings.Contains(string(text), "Inf") {
			t.Errorf("%s has a point nowhere", as.file)
		}
	}
}

func TestPlotLeavesOutWhatHasNoPlace(t *testing.T) {
	p := plot{title: "a < b", logX: true, logY: true, lines: []line{{name: "l", points: [][2]float64{{0, 1}, {1, 0}, {10, 100}}}}}
	if text := p.svg(); strings.Count(text, "<circle") != 1 || strings.Contains(text, "Inf") || !strings.Contains(text, "a &lt; b") {
		t.Error(text)
	}
	if text := (plot{logY: true}).svg(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error(text)
	}
}

func TestTicksAreFew(t *testing.T) {
	for _, to := range []float64{0.3, 1, 1.7, 4, 16, 99, 123456} {
		if n := len(newAxis([]float64{0, to}, false, 0, 1).ticks()); n < 3 || n > 12 {
			t.Errorf("%d ticks to %v", n, to)
		}
	}
}
