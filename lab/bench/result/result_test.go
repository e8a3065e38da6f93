package result

import (
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/zamok-go/zamok/lab/bench/scene"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{7}, Spread{7, 7, 7, 1}},
		{[]float64{3, 1}, Spread{2, 1, 3, 2}},
		{[]float64{3, 1, 2}, Spread{2, 1, 3, 3}},
		{[]float64{5, 4, 1, 2, 3}, Spread{3, 2, 4, 5}},
		{[]float64{4, 1, 2, 3}, Spread{2.5, 1.75, 3.25, 4}},
	} {
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
	if s := SpreadOf(nil); s.N != 0 || !math.IsNaN(s.Median) {
		t.Errorf("of nothing: %+v", s)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		bound   float64
		atLeast bool
		want    Verdict
	}{
		{nil, 1, false, Unknown},
		{[]float64{1, 1, 1}, 1, false, Met},
		{[]float64{1, 1, 1}, 1, true, Met},
		{[]float64{0.8, 0.9, 1.1}, 1, false, Undecided},
		{[]float64{0.8, 0.9, 1.1}, 1, true, Undecided},
		{[]float64{1.1, 1.2}, 1, false, Missed},
		{[]float64{1.1, 1.2}, 1, true, Met},
		{[]float64{0.8, 0.9}, 1, true, Missed},
		{[]float64{9, 0.8, 0.8, 0.9, 0.9, 0.9}, 1, false, Met}, // one odd repetition of six decides nothing
	} {
		if got := SpreadOf(c.values).Judge(c.bound, c.atLeast); got != c.want {
			t.Errorf("%v against %v (at least: %v): %s, want %s", c.values, c.bound, c.atLeast, got, c.want)
		}
	}
	for _, c := range [][3]Verdict{{Met, Met, Met}, {Met, Undecided, Undecided}, {Missed, Unknown, Missed}, {Undecided, Unknown, Unknown}} {
		if got := Worst(c[0], c[1]); got != c[2] || Worst(c[1], c[0]) != c[2] {
			t.Errorf("the worse one of %s and %s: %s", c[0], c[1], got)
		}
	}
}

// figures are of one scenario, with three repetitions.
func figures(t *testing.T, scenario string, by map[string][]float64) *Data {
	t.Helper()
	d := &Data{Runs: map[string]About{scenario: {Date: "2030-01-02"}}}
	for locker, values := range by {
		for i, v := range values {
			d.Add(scenario, i+1, []scene.Sample{{Locker: locker, Metric: "cycles/s", Value: v}})
		}
	}
	return d
}

func TestMergeReplacesWholeScenarios(t *testing.T) {
	d := figures(t, scene.Busy, map[string][]float64{"zamok/goredis": {1, 2, 3}, "redsync/goredis": {4}})
	d.Failures = []Failure{{Scenario: scene.Busy}, {Scenario: scene.Line}}
	d.Merge(figures(t, scene.Crowd, map[string][]float64{"zamok/goredis": {9}}))
	if len(d.Series) != 3 || len(d.Failures) != 2 || len(d.Runs) != 2 {
		t.Fatalf("another scenario was added: %+v", d)
	}
	d.Merge(figures(t, scene.Busy, map[string][]float64{"zamok/goredis": {5, 6, 7}}))
	if got := d.Spread(scene.Busy, "zamok/goredis", "cycles/s", 0); got.Median != 6 {
		t.Errorf("the newer figures are not there: %+v", got)
	}
	if d.Values(scene.Busy, "redsync/goredis", "cycles/s", 0) != nil || len(d.Failures) != 1 {
		t.Errorf("of the older run something is left: %+v", d)
	}
}

func TestSavedIsLoaded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.json")
	if d, err := Load(name); err != nil || len(d.Runs) != 0 {
		t.Fatalf("no file: %+v, %v", d, err)
	}
	d := figures(t, scene.Busy, map[string][]float64{"zamok/goredis": {1, 2.5, 3}})
	d.Failures = []Failure{{Scenario: scene.Line, Locker: "a", Rep: 2, Error: "x"}}
	if err := d.Save(name); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(name); err != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("loaded %+v, saved %+v: %v", got, d, err)
	}
}

// A ratio is of what was measured side by side, whatever is missing elsewhere.
func TestTargetsCompareWithinARepetition(t *testing.T) {
	d := figures(t, scene.Busy, map[string][]float64{
		"zamok/goredis": {10, 20, 40}, "scripts/goredis": {10, 20, 40},
		"zamok/rueidis": {10, 20, 40}, "scripts/rueidis": {20, 40},
		"redsync/goredis": {5, 20, 1}, "redislock/goredis": {1, 5, 20}, "rueidislock/rueidis": {1, 1, 1},
	})
	var judged []Target
	for _, target := range Targets() {
		if target.Scenario == scene.Busy {
			judged = append(judged, target)
		} else if v := target.Verdict(d); v != Unknown {
			t.Errorf("%s %s: %s, though it was not measured", target.Row, target.Figure, v)
		}
	}
	if len(judged) != 2 {
		t.Fatalf("%d targets of this scenario", len(judged))
	}
	if s := judged[0].Of(d, "goredis"); s != (Spread{1, 1, 1, 3}) {
		t.Errorf("against the scripts: %+v", s)
	}
	if s := judged[0].Of(d, "rueidis"); s != (Spread{0.5, 0.5, 0.5, 2}) || judged[0].Verdict(d) != Missed {
		t.Errorf("one driver misses: %+v, %s", s, judged[0].Verdict(d))
	}
	if s := judged[1].Of(d, "goredis"); s.Low != 1 || s.High != 2 || judged[1].Verdict(d) != Undecided {
		t.Errorf("against the best peer of each repetition: %+v, %s", s, judged[1].Verdict(d))
	}
}

// What is judged must be what some scenario measures of its lockers.
func TestTargetsNameScenarios(t *testing.T) {
	for _, target := range Targets() {
		s, err := scene.Find(target.Scenario)
		if err != nil {
			t.Error(err)
		} else if target.X != 0 && len(s.Xs) == 0 {
			t.Errorf("%s: %s is not played with a number", target.Row, s.Name)
		}
	}
}
