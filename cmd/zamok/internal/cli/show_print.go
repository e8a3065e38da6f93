package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// facts prints what is known, one a line.
type facts struct{ w io.Writer }

func (f facts) line(what, format string, args ...any) {
	fmt.Fprintf(f.w, "%-8s  %s\n", what, fmt.Sprintf(format, args...))
}

// known prints text of others, if there is any.
func (f facts) known(what, text string) {
	if text != "" {
		f.line(what, "%s", visible(text))
	}
}

func printLock(w io.Writer, page int, l inspect.Lock) {
	f := facts{w}
	f.line("lock", "%s", visible(l.Title()))
	if l.Key != "" && l.Title() != l.Key && !isNamedKey(l) {
		f.line("key", "%s", visible(l.Key))
	}
	switch {
	case l.Shared():
		f.shared(l)
	case l.Held:
		f.holder(l)
	default:
		f.line("state", "free")
	}
	f.line("waiting", "%d", l.Waiting)
	if l.Shared() {
		printHolders(w, page, l)
	}
	printWaiters(w, page, l)
}

// isNamedKey says whether the key is what zamok makes of the name, whatever the
// prefix: then it tells nothing new.
func isNamedKey(l inspect.Lock) bool {
	if l.Kind == inspect.KindSemaphore {
		return strings.HasSuffix(l.Key, l.Title())
	}
	return strings.HasSuffix(l.Key, "lock:"+l.Name)
}

// shared prints what is said of a lock that several may have, but who they are.
func (f facts) shared(l inspect.Lock) {
	switch {
	case l.Kind == inspect.KindReadLock:
		f.line("state", "held by %s", counted(l.Holding, "reader"))
	case l.Held:
		f.line("state", "%s held", use(l))
	default:
		f.line("state", "free")
	}
	switch {
	case l.Fixed:
		f.line("permits", "%d, set for all who use it", l.Permits)
	case l.Permits > 0:
		f.line("permits", "%d, as those say who use it", l.Permits)
	}
	switch {
	case l.NoTTL:
		f.line("ends", "never by itself: the key has no TTL")
	case l.Kind == inspect.KindReadLock:
		f.line("ends", "in %s, unless it is renewed", ago(l.Left))
	}
}

// use is how many have it, and of how many: "3 readers", "5/10 permits".
func use(l inspect.Lock) string {
	switch {
	case l.Kind == inspect.KindReadLock:
		return counted(l.Holding, "reader")
	case l.Permits > 0:
		return fmt.Sprintf("%d/%d permits", l.Holding, l.Permits)
	}
	return counted(l.Holding, "permit")
}

func printHolders(w io.Writer, page int, l inspect.Lock) {
	if len(l.Holders) == 0 {
		return
	}
	rows := [][]string{{"NO", "HOLDER", "SINCE", "LEFT", "NOTES"}}
	for n, h := range l.Holders {
		since := "-"
		if h.Since > 0 {
			since = ago(h.Since)
		}
		said := []string{notes(h)}
		if h.Broken != nil {
			said = append(said, visible(h.Broken.By)+": "+visible(h.Broken.Why))
		}
		said = slices.DeleteFunc(append(said, visible(h.Reason)), func(s string) bool { return s == "" })
		rows = append(rows, []string{strconv.Itoa(n + 1), holder(h), since, ago(h.Left), strings.Join(said, "; ")})
	}
	fmt.Fprintln(w)
	table(w, page, rows, 1, 4)
	if more := l.Holding - len(l.Holders); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

// holder prints what is known of one who has the lock alone.
func (f facts) holder(l inspect.Lock) {
	h := l.First()
	if h.Resting {
		f.line("state", "at rest after its holder released it (--hold-min)")
		f.line("holder", "nobody; %s had it", holder(h))
	} else {
		f.line("state", "held")
		f.line("holder", "%s", holder(h))
		f.known("command", h.Command)
		f.known("version", h.Version)
		switch {
		case h.Silent:
			f.line("process", "silent: it is gone, or cut off from the server")
		case h.Up > 0:
			f.line("process", "up %s", ago(h.Up))
		}
	}
	f.known("reason", h.Reason)
	if h.Since > 0 {
		f.line("since", "%s ago", ago(h.Since))
	}
	f.end(l, h)
	if h.Broken != nil {
		f.line("broken", "%s asked the holder to stop: %s", visible(h.Broken.By), visible(h.Broken.Why))
	}
	if h.Fence > 0 {
		f.line("fence", "%d", h.Fence)
	}
}

// end says when the lock ends and what is known of its renewals.
func (f facts) end(l inspect.Lock, h inspect.Holder) {
	switch {
	case l.NoTTL:
		f.line("ends", "never by itself: the key has no TTL")
		return
	case h.Resting || h.Foreign || h.Broken != nil || h.Detached:
		f.line("ends", "in %s", ago(l.Left))
	default:
		f.line("ends", "in %s, unless it is renewed", ago(l.Left))
	}
	switch {
	case h.Resting || h.Foreign || h.Broken != nil:
	case h.Detached:
		f.line("renewals", "none: it was detached, for another process to go on with")
	case h.Late > 0:
		f.line("renewals", "late: the next one is overdue by %s", ago(h.Late))
	case h.TTL > 0:
		f.line("renewals", "on time, to %s", ago(h.TTL))
	}
}

// wants is what somebody waits for.
func wants(l inspect.Lock, w inspect.Waiter) string {
	switch {
	case l.Kind == inspect.KindSemaphore:
		return "permit"
	case w.Reads():
		return "read"
	}
	return "write"
}

func printWaiters(w io.Writer, page int, l inspect.Lock) {
	if len(l.Waiters) == 0 {
		return
	}
	// What a waiter wants is told where they differ: else it is the lock.
	differ := l.Kind == inspect.KindReadLock || slices.ContainsFunc(l.Waiters, inspect.Waiter.Reads)
	rows := [][]string{{"PLACE", "WAITER", "WAITING", "TTL", "STATE"}}
	for _, q := range l.Waiters {
		state := "listens"
		switch {
		case q.Polls:
			state = "polls"
		case !q.Alive:
			state = "gone, will be passed over"
		}
		rows = append(rows, []string{strconv.Itoa(q.Place), serviceOn(q.Service, q.Holder), ago(q.Waited), ago(q.TTL), state})
	}
	if differ {
		rows[0] = slices.Insert(rows[0], 1, "WANTS")
		for n, q := range l.Waiters {
			rows[n+1] = slices.Insert(rows[n+1], 1, wants(l, q))
		}
	}
	fmt.Fprintln(w)
	table(w, page, rows, slices.Index(rows[0], "WAITER"))
	if more := l.Waiting - len(l.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

func printDeadlock(w io.Writer, d inspect.Deadlock) {
	if d.Sure {
		fmt.Fprintln(w, "deadlock: these wait for each other")
	} else {
		fmt.Fprintln(w, "perhaps a deadlock: these wait for each other")
	}
	for _, line := range deadlockLines(d) {
		fmt.Fprintln(w, "  "+line)
	}
	fmt.Fprintln(w, "  it ends when one of them does: zamok break NAME --reason TEXT")
}

// deadlockLines says of each member for which one its holder waits.
func deadlockLines(d inspect.Deadlock) []string {
	var lines []string
	for n, m := range d.Members {
		next := d.Members[(n+1)%len(d.Members)]
		line := fmt.Sprintf("%s: held by %s, which has waited %s for %s", visible(m.Title()), serviceOn(m.Service, m.Holder), ago(m.Waits.Waited), visible(next.Title()))
		switch {
		case m.Sure:
		case m.Kind == inspect.KindSemaphore:
			line += ", perhaps not under this permit, and others may come free"
		default:
			line += ", perhaps not under this lock"
		}
		lines = append(lines, line)
	}
	return lines
}

func who(h zamok.Holder) string { return visible(h.String()) }

// holder is who holds a lock, with the service that it says it is.
func holder(h inspect.Holder) string { return serviceOn(h.Service, h.Holder) }

func serviceOn(service string, h zamok.Holder) string {
	if service == "" {
		return who(h)
	}
	return visible(service) + " on " + who(h)
}
