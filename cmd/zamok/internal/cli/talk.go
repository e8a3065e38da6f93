package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

// talk writes what is said to the user. It never makes its caller wait: a
// terminal that was stopped with Ctrl-S, or a full pipe, must not delay a
// renewal. When more is said than can be written, it is left out.
type talk struct {
	mu      sync.Mutex
	quiet   bool
	secrets []string

	lines     chan string
	done      chan struct{}
	closeOnce sync.Once
}

const (
	backlog   = 256
	lastWords = time.Second // how long close waits for what is still to be written
)

func newTalk(w io.Writer) *talk {
	t := &talk{lines: make(chan string, backlog), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for line := range t.lines {
			_, _ = io.WriteString(w, line)
		}
	}()
	return t
}

// hush silences say and warn.
func (t *talk) hush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet = true
}

// hide keeps texts from ever being written.
func (t *talk) hide(secrets ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range secrets {
		if len(s) >= 4 { // shorter ones would make holes in every message
			t.secrets = append(t.secrets, s)
		}
	}
}

// userinfos returns what stands before the last @ of each URL among the arguments,
// wherever the user put it: whole, with blanks that a pattern would stop at.
func userinfos(args []string) []string {
	var found []string
	for _, arg := range args {
		_, rest, ok := strings.Cut(arg, "://")
		if at := strings.LastIndexByte(rest, '@'); ok && at > 0 {
			_, password, _ := strings.Cut(rest[:at], ":")
			found = append(found, rest[:at], password)
		}
	}
	return found
}

// say tells how things go.
func (t *talk) say(format string, args ...any) {
	t.mu.Lock()
	quiet := t.quiet
	t.mu.Unlock()
	if !quiet {
		t.write(format, args)
	}
}

// fail tells what went wrong; hint, what to do about it. They are not silenced.
func (t *talk) fail(format string, args ...any) { t.write(format, args) }

func (t *talk) hint(format string, args ...any) { t.write("hint: "+format, args) }

func (t *talk) write(format string, args []any) {
	t.put(strings.ReplaceAll(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), "\n", " ")) // one message is one line
}

// dump tells what has several lines of its own: a stack.
func (t *talk) dump(text string) { t.put(strings.TrimRight(text, "\n")) }

func (t *talk) put(text string) {
	select {
	case t.lines <- "zamok: " + t.clean(text) + "\n":
	default:
	}
}

// userinfo is what stands before the @ of a URL, whatever part of a message it
// is in: flags that are mistyped are quoted by the parser of flags.
var userinfo = regexp.MustCompile(`://[^\s"'` + "`" + `]*@`)

func (t *talk) clean(line string) string {
	line = userinfo.ReplaceAllStringFunc(line, func(m string) string {
		if m == "://:PASSWORD@" || m == "://USER:PASSWORD@" {
			return m // our own hints
		}
		return "://…@"
	})
	line = strings.Map(func(r rune) rune { // names and hosts come from others, and must not steer the terminal
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, line)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.secrets {
		line = strings.ReplaceAll(line, s, "…")
	}
	return line
}

// close waits for what was said to be written, within reason. Nothing may be
// said afterwards.
func (t *talk) close() {
	t.closeOnce.Do(func() {
		close(t.lines)
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-t.done:
		case <-timer.C:
		}
	})
}
