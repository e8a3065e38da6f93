package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
)

// who words a holder: the service, and where it is.
func (h *Holder) who() string { return named(h.Service, h.Holder) }

func (w *Waiter) who() string { return named(w.Service, w.Holder) }

func named(service string, h zamok.Holder) string {
	if service == "" {
		return h.String()
	}
	return fmt.Sprintf("%s on %v", service, h)
}

// state words why somebody has to wait.
func (l *Lock) state() string {
	h := l.First()
	switch {
	case !l.Held:
		return "nobody holds it"
	case h.Resting:
		return "it is at rest for another " + words(l.Left)
	case l.Kind == KindSemaphore:
		return l.use() + " are held"
	case l.Kind == KindReadLock:
		return l.use() + " have it"
	case h.Since == 0:
		return h.who() + " has it"
	}
	return fmt.Sprintf("%s has had it for %s", h.who(), words(h.Since))
}

// use words how many share it.
func (l *Lock) use() string {
	switch {
	case l.Kind == KindReadLock:
		return fmt.Sprintf("%d readers", l.Holding)
	case l.Permits == 0:
		return fmt.Sprintf("%d permits", l.Holding)
	}
	return fmt.Sprintf("%d of %d permits", l.Holding, l.Permits)
}

// String says who waits for whom, in one line.
func (d Deadlock) String() string {
	var b strings.Builder
	for n, m := range d.Members {
		next := d.Members[(n+1)%len(d.Members)]
		if n > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s holds %q and waits for %q", named(m.Service, m.Holder), m.Title(), next.Title())
		if !m.Sure {
			b.WriteString(" (perhaps for another reason)")
		}
	}
	return b.String()
}

// words rounds a time to what a person wants to know of it.
func words(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
