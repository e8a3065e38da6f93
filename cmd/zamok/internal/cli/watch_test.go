package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zamok-go/zamok/cmd/zamok/internal/connect"
	"github.com/zamok-go/zamok/driver"
)

// A picture has the lines that there are and no more, and says how many locks it
// leaves out.
func TestPictureFits(t *testing.T) {
	s := &shot{at: time.Unix(0, 0), notes: []string{"a note " + strings.Repeat("x", 300)}}
	for range 30 {
		s.locks = append(s.locks, heldBy(strings.Repeat("name", 20), "host", time.Minute, 2))
	}
	f := &lsFlags{every: duration(2 * time.Second)}
	for height := 1; height < 40; height++ {
		for _, columns := range []int{60, 80, 200} {
			lines := f.picture(s, strings.Repeat("trouble ", 40), columns, height)
			if len(lines) > height {
				t.Fatalf("%d lines on %d", len(lines), height)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > columns {
					t.Errorf("%d characters on %d: %s", n, columns, line)
				}
			}
			shown := 0
			for _, line := range lines {
				if strings.HasPrefix(line, "name") {
					shown++
				}
			}
			last := lines[len(lines)-1]
			if height >= 6 && shown < 30 && last != fmt.Sprintf("… and %d more", 30-shown) {
				t.Errorf("height %d: %d shown, the last line is %q", height, shown, last)
			}
			if height >= 34 && shown != 30 {
				t.Errorf("height %d: only %d shown", height, shown)
			}
		}
	}
	if lines := f.picture(&shot{notes: []string{"no locks"}}, "", 80, 24); len(lines) != 2 || lines[1] != "no locks" {
		t.Errorf("without locks: %q", lines)
	}
}

// An outage is told once, and its end; a refusal ends the looking on.
func TestOutage(t *testing.T) {
	r, w := io.Pipe()
	told := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		told <- string(b)
	}()
	k := newTalk(w)
	o := outage{talk: k}
	gone := &connect.UnreachableError{Err: errors.New("inspect: zamok: gone")}
	for _, err := range []error{nil, gone, gone, nil, nil, gone} {
		if got := o.judge(err); got != nil {
			t.Errorf("%v ends it", got)
		}
	}
	if got := o.judge(&driver.ServerError{Text: "NOPERM no"}); got == nil {
		t.Error("a refusal does not end it")
	}
	k.close()
	w.Close()
	got := <-told
	if strings.Count(got, "warning: no answer from the server: ") != 2 || strings.Count(got, "the server answers again") != 1 || strings.Contains(got, "inspect:") {
		t.Errorf("said:\n%s", got)
	}
}

func TestPlainErrors(t *testing.T) {
	known := &failure{code: 75, err: errors.New("inspect: x")}
	if unprefixed(known) != error(known) || unprefixed(nil) != nil {
		t.Error("what has its words is changed")
	}
	in := errors.New("inspect: lock \"a\": zamok: gone")
	if got := unprefixed(in); got.Error() != "lock \"a\": gone" || !errors.Is(got, in) {
		t.Errorf("%v", got)
	}
}
