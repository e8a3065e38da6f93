package cli

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/inspect"
)

// pageful is how many locks are written at once. It is what package inspect reads
// in one go.
const pageful = 256

// lister writes locks as a table, piece by piece. The first piece decides how wide
// the columns are.
type lister struct {
	page   int
	layout *layout
}

var lsHead = []string{"NAME", "HOLDER", "SINCE", "LEFT", "WAITING", "NOTES"}

func (p *lister) write(w io.Writer, locks []inspect.Lock) {
	for _, line := range p.lines(locks) {
		_, _ = io.WriteString(w, line+"\n")
	}
}

// lines begin with the headings if these are the first locks.
func (p *lister) lines(locks []inspect.Lock) []string {
	var rows [][]string
	if p.layout == nil {
		rows = append(rows, lsHead)
	}
	for _, l := range locks {
		rows = append(rows, lsRow(l))
	}
	if p.layout == nil {
		p.layout = newLayout(p.page, rows, 0, 1, 5)
		for _, column := range []int{2, 3} {
			p.layout.atLeast(column, len("59m59s"))
		}
		p.layout.atLeast(5, leastNotes)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, p.layout.line(row))
	}
	return lines
}

func printLocks(w io.Writer, locks []inspect.Lock) { (&lister{page: width}).write(w, locks) }

func lsRow(l inspect.Lock) []string {
	row := []string{visible(l.Title()), "nobody", "-", "-", strconv.Itoa(l.Waiting), notes(l.Holders...)}
	h := l.First()
	switch {
	case l.Err != nil:
		row[1], row[4] = "unreadable: "+problem(l.Err), "-"
	case l.Held:
		row[1], row[3] = holders(l), ago(l.Left)
		if h.Since > 0 {
			row[2] = ago(h.Since)
		}
		if l.NoTTL {
			row[3] = "no TTL"
		}
	}
	return row
}

// holders is who has a lock; of several, how many, and what services they are of.
func holders(l inspect.Lock) string {
	h := l.First()
	switch {
	case h.Resting:
		return "at rest, " + holder(h)
	case !l.Shared():
		return holder(h)
	case l.Kind == inspect.KindReadLock && l.Holding == 1:
		return "1 reader: " + holder(h)
	}
	var services []string
	for _, h := range l.Holders {
		if s := visible(h.Service); h.Service != "" && !slices.Contains(services, s) {
			services = append(services, s)
		}
	}
	if len(services) == 0 {
		return use(l)
	}
	return use(l) + ": " + strings.Join(services, ", ")
}

// notes are what is not as usual, the worst first: there may be room for one. Of
// several holders they say how many it is of.
func notes(all ...inspect.Holder) string {
	var notes []string
	note := func(word string, is func(inspect.Holder) bool) {
		n := 0
		for _, h := range all {
			if is(h) {
				n++
			}
		}
		switch {
		case n == 0:
		case len(all) > 1:
			notes = append(notes, strconv.Itoa(n)+" "+word)
		default:
			notes = append(notes, word)
		}
	}
	late := "late"
	if len(all) == 1 {
		late += " " + ago(all[0].Late)
	}
	note("silent", func(h inspect.Holder) bool { return h.Silent })
	note("broken", func(h inspect.Holder) bool { return h.Broken != nil })
	note(late, func(h inspect.Holder) bool { return h.Late > 0 })
	note("detached", func(h inspect.Holder) bool { return h.Detached })
	return strings.Join(notes, ", ")
}

// problem is the last part of an error, where a server's words are.
func problem(err error) string {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return "a key of another type"
	}
	return visible(err.Error())
}

// listTable writes the locks while they are still being read.
func (a *app) listTable(locks iter.Seq2[inspect.Lock, error]) (found int, err error) {
	p := lister{page: a.pageWidth()}
	for part, err := range pages(locks) {
		if err != nil {
			return found, err
		}
		if err := a.print(func(w io.Writer) { p.write(w, part) }); err != nil {
			return found, err
		}
		found += len(part)
	}
	return found, nil
}

// pages gathers locks. An error comes alone, after what was read before it.
func pages(locks iter.Seq2[inspect.Lock, error]) iter.Seq2[[]inspect.Lock, error] {
	return func(yield func([]inspect.Lock, error) bool) {
		var part []inspect.Lock
		for l, err := range locks {
			if err == nil {
				part = append(part, l)
				if len(part) < pageful {
					continue
				}
			}
			if len(part) > 0 && !yield(part, nil) {
				return
			}
			part = part[:0]
			if err != nil {
				yield(nil, err)
				return
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
}

// listJSON writes one list. When reading fails it stays open at its end, so that
// no reader takes it for all.
func (a *app) listJSON(locks iter.Seq2[inspect.Lock, error]) (found int, err error) {
	w := bufio.NewWriter(a.stdout)
	defer w.Flush()
	separator := "[\n  "
	for l, err := range locks {
		if err != nil {
			return found, err
		}
		text, err := jsonBytes(jsonOf(l), "  ", "  ")
		if err != nil {
			return found, a.written(err)
		}
		_, _ = w.WriteString(separator) // Flush tells what went wrong
		_, _ = w.Write(bytes.TrimRight(text, "\n"))
		found, separator = found+1, ",\n  "
	}
	end := "\n]\n"
	if found == 0 {
		end = "[]\n"
	}
	_, _ = w.WriteString(end)
	return found, a.written(w.Flush())
}
