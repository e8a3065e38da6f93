package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

const (
	width      = 80 // of a page that is no terminal
	narrowest  = 40 // below, a table is of no use: lines wrap instead
	gap        = 2  // between columns
	leastCut   = 8  // a column is not cut below
	leastNotes = 8  // what the last column has at least: one word of it
)

// print writes in one piece what f makes.
func (a *app) print(f func(io.Writer)) error {
	var b bytes.Buffer
	f(&b)
	_, err := a.stdout.Write(b.Bytes())
	return a.written(err)
}

func (a *app) written(err error) error {
	if err != nil {
		return &failure{code: exit.Output, err: fmt.Errorf("cannot write the result: %w", err), hint: "is the disk full, or the reader gone?"}
	}
	return nil
}

// pageWidth is how wide a table on stdout may be: as the terminal is, so that
// nobody has to guess what was cut, and 80 elsewhere.
func (a *app) pageWidth() int {
	columns, _ := size(a.stdout)
	return columns
}

// size is that of the terminal, or of a page without end.
func size(f *os.File) (columns, lines int) {
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return width, 1 << 30
	}
	return max(columns, narrowest), lines
}

// layout is how wide the columns of a table are. It is made from the first rows,
// so that a long table can be written while it is still being read; later rows
// that are wider are cut.
type layout struct {
	page   int
	widths []int
	cut    []int // the columns that may be cut: numbers never are
}

// newLayout fits the rows, whose first has the headings, into the page: of the
// columns that may be cut, the widest is made narrower first.
func newLayout(page int, rows [][]string, cut ...int) *layout {
	l := &layout{page: page, widths: make([]int, len(rows[0])), cut: cut}
	for c := range l.widths {
		for _, r := range rows {
			l.widths[c] = max(l.widths[c], utf8.RuneCountInString(r[c]))
		}
	}
	l.shrink()
	return l
}

// atLeast widens a column for what later rows may have in it.
func (l *layout) atLeast(column, width int) {
	l.widths[column] = max(l.widths[column], width)
	l.shrink()
}

func (l *layout) shrink() {
	for l.total() > l.page {
		widest := l.cut[0]
		for _, c := range l.cut {
			if l.widths[c] > l.widths[widest] {
				widest = c
			}
		}
		if l.widths[widest] <= leastCut {
			return
		}
		l.widths[widest]--
	}
}

func (l *layout) total() int {
	total := -gap
	for _, w := range l.widths {
		total += w + gap
	}
	return total
}

func (l *layout) write(w io.Writer, rows [][]string) {
	for _, r := range rows {
		fmt.Fprintln(w, l.line(r))
	}
}

// line is a row without the end of the line. The last column has all that is
// left of the page.
func (l *layout) line(row []string) string {
	var b strings.Builder
	for c, text := range row {
		room := l.widths[c]
		if c == len(row)-1 {
			room = max(room, l.page-l.total()+room)
		}
		if l.mayCut(c) {
			text = shorten(text, room)
		}
		b.WriteString(text)
		b.WriteString(strings.Repeat(" ", max(0, l.widths[c]-utf8.RuneCountInString(text))+gap))
	}
	return strings.TrimRight(b.String(), " ")
}

func (l *layout) mayCut(column int) bool {
	for _, c := range l.cut {
		if c == column {
			return true
		}
	}
	return false
}

// shorten cuts text to so many characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 0)]) + "…"
}

// table writes rows in columns, no wider than the page.
func table(w io.Writer, page int, rows [][]string, cut ...int) {
	newLayout(page, rows, cut...).write(w, rows)
}

// visible makes text safe for a terminal: names and tokens are anybody's.
func visible(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}

// ago words a time for people, in one or two units.
func ago(d time.Duration) string {
	d = max(d, 0)
	for _, r := range []struct{ below, to time.Duration }{
		{time.Second, time.Millisecond}, {10 * time.Second, 100 * time.Millisecond}, {time.Hour, time.Second}, {48 * time.Hour, time.Minute},
	} {
		if d < r.below {
			d = d.Round(r.to) // before the units are chosen: 59.9 s are a minute
			break
		}
	}
	switch {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// counted words a number of things: the plural has an s.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
