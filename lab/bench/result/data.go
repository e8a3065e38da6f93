package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/zamok-go/zamok/lab/bench/scene"
)

// About says where and with what a scenario was played.
type About struct {
	Date      string            `json:"date"`
	Machine   string            `json:"machine"`
	CPUs      int               `json:"cpus"`
	System    string            `json:"system"`
	Server    string            `json:"server"`
	Go        string            `json:"go"`
	Libraries map[string]string `json:"libraries"`
	Commit    string            `json:"commit"`
	Load      string            `json:"load"` // of the machine just before
}

// Series is one figure of one locker in all repetitions.
type Series struct {
	Scenario string       `json:"scenario"`
	Locker   string       `json:"locker"`
	Metric   string       `json:"metric"`
	X        int          `json:"x,omitempty"`
	Values   [][2]float64 `json:"values"` // repetition, value
}

// Failure is a process that gave no figures.
type Failure struct {
	Scenario string `json:"scenario"`
	Locker   string `json:"locker"`
	X        int    `json:"x,omitempty"`
	Rep      int    `json:"rep"`
	Error    string `json:"error"`
}

// Data is all that is known, of the last time that each scenario was played.
type Data struct {
	Runs     map[string]About
	Series   []Series
	Failures []Failure
}

// Add notes what a process measured.
func (d *Data) Add(scenario string, rep int, samples []scene.Sample) {
	for _, s := range samples {
		if i := d.find(scenario, s.Locker, s.Metric, s.X); i >= 0 {
			d.Series[i].Values = append(d.Series[i].Values, [2]float64{float64(rep), s.Value})
			continue
		}
		d.Series = append(d.Series, Series{scenario, s.Locker, s.Metric, s.X, [][2]float64{{float64(rep), s.Value}}})
	}
}

func (d *Data) find(scenario, locker, metric string, x int) int {
	return slices.IndexFunc(d.Series, func(s Series) bool {
		return s.Scenario == scenario && s.Locker == locker && s.Metric == metric && s.X == x
	})
}

// Merge puts the scenarios that the other data has in the place of those that d has.
// Scenarios are replaced as a whole: ratios of figures of two days would mean nothing.
func (d *Data) Merge(newer *Data) {
	if d.Runs == nil {
		d.Runs = make(map[string]About)
	}
	for name, about := range newer.Runs {
		d.Runs[name] = about
		d.Series = slices.DeleteFunc(d.Series, func(s Series) bool { return s.Scenario == name })
		d.Failures = slices.DeleteFunc(d.Failures, func(f Failure) bool { return f.Scenario == name })
	}
	d.Series = append(d.Series, newer.Series...)
	d.Failures = append(d.Failures, newer.Failures...)
}

// Values returns a figure by repetition. Nil: there is none.
func (d *Data) Values(scenario, locker, metric string, x int) map[int]float64 {
	i := d.find(scenario, locker, metric, x)
	if i < 0 {
		return nil
	}
	by := make(map[int]float64)
	for _, v := range d.Series[i].Values {
		by[int(v[0])] = v[1]
	}
	return by
}

// Spread sums a figure up.
func (d *Data) Spread(scenario, locker, metric string, x int) Spread {
	return SpreadOf(list(d.Values(scenario, locker, metric, x)))
}

func list(by map[int]float64) []float64 {
	var all []float64
	for _, v := range by {
		all = append(all, v)
	}
	return all
}

// Xs returns with what a scenario was played for a metric, in order.
func (d *Data) Xs(scenario, metric string) []int {
	var xs []int
	for _, s := range d.Series {
		if s.Scenario == scenario && s.Metric == metric && !slices.Contains(xs, s.X) {
			xs = append(xs, s.X)
		}
	}
	slices.Sort(xs)
	return xs
}

// Ratio divides figures of the same repetition, which were measured next to each other.
func Ratio(of, to map[int]float64) map[int]float64 {
	by := make(map[int]float64)
	for rep, v := range of {
		if w, ok := to[rep]; ok && w != 0 {
			by[rep] = v / w
		}
	}
	return by
}

// Load reads the file. One that is not there is empty.
func Load(name string) (*Data, error) {
	d := &Data{Runs: make(map[string]About)}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	return d, err
}

// Save writes the file as a whole, or leaves the one that is there. A series has one
// line, so that what changed can be seen.
func (d *Data) Save(name string) error {
	var b bytes.Buffer
	runs, err := json.MarshalIndent(d.Runs, "  ", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "{\n  \"runs\": %s,\n  \"series\": [", runs)
	if err := lines(&b, d.Series); err != nil {
		return err
	}
	b.WriteString("],\n  \"failures\": [")
	if err := lines(&b, d.Failures); err != nil {
		return err
	}
	b.WriteString("]\n}\n")
	if err := os.WriteFile(name+".new", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func lines[T any](b *bytes.Buffer, all []T) error {
	for i, v := range all {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, "\n    %s", text)
	}
	return nil
}
