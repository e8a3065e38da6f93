package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

func TestEventText(t *testing.T) {
	foreign := zamok.Holder{Foreign: true, Token: "x\x1b"}
	for _, c := range []struct {
		e    inspect.Event
		want string
	}{
		{inspect.Event{}, ""},
		{inspect.Event{By: "ann@ops", Why: "stuck\x1b", Held: time.Hour}, `by ann@ops; "stuck\x1b"; held for 1h00m`},
		{inspect.Event{By: "ann@ops", Now: true, Why: "gone"}, "taken away by ann@ops; gone"},
		{inspect.Event{Held: time.Second, Next: foreign}, `held for 1s; then a foreign program (value "x\x1b")`},
		{inspect.Event{Why: "EOF", More: 17}, "EOF; and 17 more at that time"},
	} {
		if got := eventText(c.e); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// In a file a reason is whole, names are cut, and what comes later keeps the
// columns.
func TestEventTable(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	a := newApp(out, out, out)
	defer a.talk.close()
	why := strings.Repeat("a long reason ", 15)
	event := func(id, name, why string) inspect.Event {
		return inspect.Event{ID: id, Time: time.Unix(1700000000, 0), Kind: "broken", Name: name, Holder: heldBy("", "host", 0, 0).First().Holder, Why: why}
	}
	p := &eventLister{a: a, follow: true, page: width}
	if err := p.write([]inspect.Event{event("1-0", "a", why)}); err != nil {
		t.Fatal(err)
	}
	if err := p.write([]inspect.Event{event("2-0", strings.Repeat("name", 20), "x"), event("3-0", "b", "y")}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "TIME ") || !strings.Contains(lines[1], strings.TrimSpace(why)) || !strings.Contains(lines[2], "namename…") || p.last != "3-0" {
		t.Fatalf("last %q:\n%s", p.last, b)
	}
	at := strings.Index(lines[0], "HOLDER")
	for _, line := range lines[1:] {
		if got := string([]rune(line)[at : at+10]); got != "host pid 1" {
			t.Errorf("another column: %q", line)
		}
	}
}

func TestEventJSON(t *testing.T) {
	b, err := jsonBytes(jsonEventOf(inspect.Event{ID: "1-0", Time: time.UnixMilli(1700000000123), Kind: "taken", Name: "a<b>", Fence: 1 << 52}), "", "")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"1-0","time":"2023-11-14T22:13:20.123Z","time_ms":1700000000123,"kind":"taken","name":"a<b>","key":"","holder":null,"service":"","fence":"4503599627370496","held_ms":0,"by":"","now":false,"why":"","next":null,"more":0}` + "\n"
	if !bytes.Equal(b, []byte(want)) {
		t.Errorf("%s, want %s", b, want)
	}
}
