// Package page makes of the figures what people read: tables in documents, and plots.
package page

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// The marks between which a document has what is written here.
const (
	Begin = "<!-- figures of a run: begin -->"
	End   = "<!-- figures of a run: end -->"
)

// Replace puts text between the marks of a document.
func Replace(document, text string) (string, error) {
	before, rest, ok := strings.Cut(document, Begin)
	_, after, closed := strings.Cut(rest, End)
	if !ok || !closed {
		return "", fmt.Errorf("the document lacks %s or %s", Begin, End)
	}
	return before + Begin + "\n" + text + End + after, nil
}

// ReplaceIn does so in a file.
func ReplaceIn(name, text string) error {
	document, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changed, err := Replace(string(document), text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(changed), 0o644)
}

// number prints a figure with so many digits behind the point, and thousands apart.
func number(v float64, digits int) string {
	if math.IsNaN(v) {
		return "–"
	}
	text := fmt.Sprintf("%.*f", digits, v)
	whole, rest, _ := strings.Cut(text, ".")
	sign := strings.TrimRight(whole, "0123456789")
	whole = strings.TrimPrefix(whole, sign)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if digits > 0 {
		whole += "." + rest
	}
	return sign + whole
}

// digitsFor is how many digits behind the point show what matters of figures that large.
func digitsFor(v float64) int {
	switch v = math.Abs(v); {
	case v == 0 || v >= 100:
		return 0
	case v >= 10:
		return 1
	case v >= 1:
		return 2
	}
	return 3
}

// spread prints the median, and the quartiles behind it when they differ.
func spread(s result.Spread) string {
	d := digitsFor(s.Median)
	text := number(s.Median, d)
	if low, high := number(s.Low, d), number(s.High, d); low != high {
		text += fmt.Sprintf(" (%s–%s)", low, high)
	}
	return text
}

// table prints a table of Markdown.
func table(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, r := range rows {
		line(r)
	}
	b.WriteString("\n")
}

const nothing = "No figures are kept yet: `make bench` writes them.\n"

// Short is the table of README.md.
func Short(d *result.Data) string {
	if len(d.Runs) == 0 {
		return nothing
	}
	columns := []string{"redsync/goredis", "redislock/goredis", "rueidislock/rueidis", "zamok/goredis", "zamok/rueidis"}
	head := []string{"median"}
	for _, c := range columns {
		head = append(head, result.Library(c))
	}
	var rows [][]string
	for _, t := range result.Targets() {
		if t.Short == "" {
			continue
		}
		row := []string{t.Short}
		for _, c := range columns {
			s := d.Spread(t.Scenario, c, t.Metric, t.X)
			cell := number(s.Median, t.Digits)
			if t.Scenario == scene.CutOff && s.N == 0 && c != "rueidislock/rueidis" && !strings.HasPrefix(c, locker.Zamok) {
				cell = "no signal"
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	table(&b, head, rows)
	return strings.TrimSuffix(b.String(), "\n")
}

// Verdicts is the table of the targets.
func Verdicts(d *result.Data) string {
	var rows [][]string
	for _, t := range result.Targets() {
		bound := "≤ "
		if t.AtLeast {
			bound = "≥ "
		}
		bound += number(t.Bound, boundDigits(t.Bound))
		rows = append(rows, []string{t.Row, t.Figure, bound, spread(t.Of(d, "goredis")), spread(t.Of(d, "rueidis")), string(t.Verdict(d))})
	}
	var b strings.Builder
	table(&b, []string{"row", "judged", "target", "go-redis", "rueidis", "verdict"}, rows)
	return b.String()
}

func boundDigits(v float64) int {
	for d := range 3 {
		if scaled := v * math.Pow10(d); math.Abs(scaled-math.Round(scaled)) < 1e-9 {
			return d
		}
	}
	return 3
}
