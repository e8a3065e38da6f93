package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

const width = 80

// print writes in one piece what f makes.
func (a *app) print(f func(io.Writer)) error {
	var b bytes.Buffer
	f(&b)
	_, err := a.stdout.Write(b.Bytes())
	return a.written(err)
}

func (a *app) written(err error) error {
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

func printLock(w io.Writer, l inspect.Lock) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-8s  %s\n", what, fmt.Sprintf(format, args...))
	}
	line("lock", "%s", visible(l.Name))
	switch {
	case !l.Held:
		line("state", "free")
	case l.Holder.Resting:
		line("state", "at rest after its holder released it (--hold-min)")
		line("holder", "nobody; %s had it", holder(l))
	default:
		line("state", "held")
		line("holder", "%s", holder(l))
	}
	if l.Reason != "" {
		line("reason", "%s", visible(l.Reason))
	}
	if l.Since > 0 {
		line("since", "%s ago", ago(l.Since))
	}
	switch {
	case !l.Held:
	case l.NoTTL:
		line("ends", "never by itself: the key has no TTL")
	case l.Holder.Resting || l.Holder.Foreign:
		line("ends", "in %s", ago(l.Left))
	default:
		line("ends", "in %s, unless it is renewed", ago(l.Left))
	}
	if l.Fence > 0 {
		line("fence", "%d", l.Fence)
	}
	line("waiting", "%d", l.Waiting)
	if len(l.Waiters) == 0 {
		return
	}
	rows := [][]string{{"PLACE", "WAITER", "WAITING", "TTL", "STATE"}}
	for _, q := range l.Waiters {
		state := "listens"
		switch {
		case q.Polls:
			state = "polls"
		case !q.Alive:
			state = "gone, will be passed over"
		}
		rows = append(rows, []string{strconv.Itoa(q.Place), who(q.Holder), ago(q.Waited), ago(q.TTL), state})
	}
	fmt.Fprintln(w)
	table(w, rows, 1)
	if more := l.Waiting - len(l.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

func printLocks(w io.Writer, locks []inspect.Lock) {
	rows := [][]string{{"NAME", "HOLDER", "SINCE", "LEFT", "WAITING"}}
	for _, l := range locks {
		row := []string{visible(l.Name), "nobody", "-", "-", strconv.Itoa(l.Waiting)}
		switch {
		case l.Err != nil:
			row[1], row[4] = "unreadable: "+problem(l.Err), "-"
		case l.Held:
			row[1], row[3] = holder(l), ago(l.Left)
			if l.Holder.Resting {
				row[1] = "at rest, " + row[1]
			}
			if l.Since > 0 {
				row[2] = ago(l.Since)
			}
			if l.NoTTL {
				row[3] = "no TTL"
			}
		}
		rows = append(rows, row)
	}
	table(w, rows, 0, 1)
}

// problem is the last part of an error, where a server's words are.
func problem(err error) string {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return "a key of another type"
	}
	return visible(err.Error())
}

func who(h zamok.Holder) string { return visible(h.String()) }

// holder is who holds a lock, with the service that it says it is.
func holder(l inspect.Lock) string {
	if l.Service == "" {
		return who(l.Holder)
	}
	return visible(l.Service) + " on " + who(l.Holder)
}

// table writes rows in columns, no wider than the page: the columns given may be
// cut, the widest first.
func table(w io.Writer, rows [][]string, cut ...int) {
	const gap = 2
	widths := make([]int, len(rows[0]))
	total := -gap
	for c := range widths {
		for _, r := range rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(r[c]))
		}
		total += widths[c] + gap
	}
	for total > width {
		widest := cut[0]
		for _, c := range cut {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= 8 {
			break
		}
		widths[widest]--
		total--
	}
	for _, r := range rows {
		var b strings.Builder
		for c, text := range r {
			if n := utf8.RuneCountInString(text); n > widths[c] {
				text = string([]rune(text)[:widths[c]-1]) + "…"
			}
			b.WriteString(text)
			b.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text)+gap))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
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
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
