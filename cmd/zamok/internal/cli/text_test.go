package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/connect"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/inspect"
)

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0": 0, "30": 30 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second, "1e2": 100 * time.Second,
	} {
		if d, err := parseDuration(s); d != want || err != nil {
			t.Errorf("%q is %v, %v; want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "-1", "-1s", "soon", "NaN", "Inf", "1e300", "5 s", "1d"} {
		if d, err := parseDuration(s); err == nil {
			t.Errorf("%q is read as %v", s, d)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1234567: "1ms", 1234 * time.Millisecond: "1.2s", 12345 * time.Millisecond: "12s",
		61 * time.Second: "1m01s", 3601 * time.Second: "1h00m", 50 * time.Hour: "2d02h",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

// A table stays within the page whatever names there are, and no name reaches
// the terminal with control characters.
func TestTableWidth(t *testing.T) {
	var locks []inspect.Lock
	for _, name := range []string{"a", strings.Repeat("ж", 300), "\x1b[31mred", strings.Repeat("x", 79), "bad \xff utf8"} {
		locks = append(locks, inspect.Lock{
			Name: name, Held: true, Waiting: 12345, Left: time.Hour, Holding: 1,
			Holders: []inspect.Holder{{Holder: zamok.Holder{Foreign: true, Token: strings.Repeat("t\x00", 100)}, Since: 50 * time.Hour}},
		}, inspect.Lock{Name: name, Err: errors.New(strings.Repeat("trouble ", 50))})
	}
	var b bytes.Buffer
	printLocks(&b, locks)
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d characters: %s", n, line)
		}
		if strings.ContainsAny(line, "\x1b\x00\n") || !utf8.ValidString(line) {
			t.Errorf("would steer a terminal: %q", line)
		}
	}
}

// stuck is a terminal that was stopped with Ctrl-S.
type stuck struct{ until chan struct{} }

func (s *stuck) Write(b []byte) (int, error) {
	<-s.until
	return len(b), nil
}

// Whoever says something never waits, and the end waits a second at most.
func TestTalkNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{make(chan struct{})}
		k := newTalk(w)
		began := time.Now()
		for i := range 10 * backlog {
			k.say("line %d", i)
		}
		k.close()
		if took := time.Since(began); took > lastWords {
			t.Errorf("took %v", took)
		}
		close(w.until)
	})
}

func TestTalk(t *testing.T) {
	r, w := io.Pipe()
	var got bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&got, r)
	}()
	k := newTalk(w)
	k.hide("hunter2", "ab") // two letters cannot be hidden
	k.say("said ab, dial redis://u:p@h: hunter2")
	k.hush()
	k.say("not said")
	k.fail("name \x1b[31m%s", "x\nzamok: forged")
	k.hint("do")
	k.dump("two\nlines\n")
	k.close()
	w.Close()
	<-done
	want := "zamok: said ab, dial redis://…@h: …\nzamok: name ?[31mx zamok: forged\nzamok: hint: do\nzamok: two\nlines\n"
	if got.String() != want {
		t.Errorf("got %q, want %q", &got, want)
	}
}

// Every kind of error has its exit code and a hint.
func TestExplain(t *testing.T) {
	noperm := &driver.ServerError{Text: "NOPERM no"}
	cases := []struct {
		err  error
		code int
	}{
		{usage("h", "x"), 64},
		{&connect.UnreachableError{Err: io.EOF}, 69},
		{&connect.RefusedError{Err: errors.New("WRONGPASS")}, 77},
		{&connect.RefusedError{Err: errors.New("ERR DB index is out of range")}, 78},
		{&connect.SetupError{Err: io.EOF}, 78},
		{&connect.SetupError{Err: connect.ErrNoTLS}, 64},
		{&connect.URLError{Part: "host", Err: io.EOF, Hint: "h"}, 64},
		{&zamok.ServerError{Code: "NOPERM", Err: noperm, Hint: "h"}, 77},
		{&zamok.ServerError{Code: "WRONGTYPE", Err: noperm, Hint: "h"}, 78},
		{fmt.Errorf("inspect: %w", noperm), 77},
		{fmt.Errorf("inspect: %w", &driver.ServerError{Text: "READONLY"}), 78},
		{fmt.Errorf("zamok: %w: %w", zamok.ErrUnavailable, &driver.ServerError{Text: "LOADING"}), 69},
		{context.DeadlineExceeded, 69},
		{&zamok.ConfigError{Field: "name", Err: io.EOF}, 64},
		{&zamok.LostError{Reason: zamok.LostTaken}, 79},
		{&child.StartError{Name: "x", Code: 127, Err: io.EOF}, 127},
		{&child.StartError{Name: "x", Code: 126, Err: io.EOF}, 126},
	}
	for _, c := range cases {
		if f := explain(c.err); f.code != c.code || f.hint == "" {
			t.Errorf("%T %v: code %d, hint %q; want %d and a hint", c.err, c.err, f.code, f.hint, c.code)
		}
	}
	if f := explain(errors.New("else")); f.code != 1 {
		t.Errorf("an error of no kind: code %d, want 1", f.code)
	}
}

// What JSON itself would let pass, a terminal obeys.
func TestJSONIsPrintable(t *testing.T) {
	name := "a\x7f\u009b31m\u202e\U000e0001ж\x1b\n\ufffd"
	text, err := jsonBytes(map[string]string{"name": name}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	want := "{\"name\":\"a\\u007f\\u009b31m\\u202e\\udb40\\udc01ж\\u001b\\n\ufffd\"}\n"
	var back map[string]string
	if err := json.Unmarshal(text, &back); err != nil || back["name"] != name || string(text) != want {
		t.Errorf("%s, %q, %v; want %s", text, back, err, want)
	}
}

// What the server refuses is told once, and so is what to do about it.
func TestExplainRefusedWrites(t *testing.T) {
	full := &driver.ServerError{Text: "OOM no"}
	f := explain(&zamok.UnavailableError{Hint: "buy memory", Err: full})
	if text := f.err.Error(); strings.Contains(text, "zamok: ") || strings.Contains(text, "buy memory") || f.code != 78 || f.hint == "" {
		t.Errorf("%q, code %d, hint %q", text, f.code, f.hint)
	}
}

func TestUserinfos(t *testing.T) {
	got := userinfos([]string{"run", "--redis=redis://u:pa ss@w'ord@h:1/0", "redis://h", "a@b"})
	if want := []string{"u:pa ss@w'ord", "pa ss@w'ord"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
