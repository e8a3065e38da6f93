package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
)

// who words the holder: the service, and where it is.
func (l *Lock) who() string { return named(l.Service, l.Holder) }

func (w *Waiter) who() string { return named(w.Service, w.Holder) }

func named(service string, h zamok.Holder) string {
	if service == "" {
		return h.String()
	}
	return fmt.Sprintf("%s on %v", service, h)
}

// state words why somebody has to wait.
func (l *Lock) state() string {
	switch {
	case !l.Held:
		return "nobody holds it"
	case l.Holder.Resting:
		return "it is at rest for another " + words(l.Left)
	case l.Since == 0:
		return l.who() + " has it"
	}
	return fmt.Sprintf("%s has had it for %s", l.who(), words(l.Since))
}

// ends words when the lock will be free without anybody's doing.
func (l *Lock) ends() string {
	if l.NoTTL {
		return "it never ends by itself"
	}
	return "it ends in " + words(l.Left)
}

// String says who waits for whom, in one line.
func (d Deadlock) String() string {
	var b strings.Builder
	for n, m := range d.Members {
		next := d.Members[(n+1)%len(d.Members)]
		if n > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s holds %q and waits for %q", named(m.Service, m.Holder), m.Name, next.Name)
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
