package cli

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

func heldBy(name, host string, since time.Duration, waiting int) inspect.Lock {
	h := zamok.Holder{Host: host, PID: 1, Client: host + "/1/x", Token: "z1/" + host + "/1/x/1"}
	return inspect.Lock{
		Kind: inspect.KindLock, Name: name, Key: "lock:" + name, Held: true, Left: 10 * time.Second, Waiting: waiting,
		Holders: []inspect.Holder{{Holder: h, Since: since, Left: 10 * time.Second}}, Holding: 1,
	}
}

// heldByForeign is a lock that another program holds.
func heldByForeign(name string) inspect.Lock {
	return inspect.Lock{
		Kind: inspect.KindLock, Name: name, Key: "lock:" + name, Held: true, Holding: 1,
		Holders: []inspect.Holder{{Holder: zamok.Holder{Foreign: true, Token: "x"}}},
	}
}

func TestListWants(t *testing.T) {
	held := heldBy("a", "web-3.example.com", time.Minute, 0)
	foreign := heldByForeign("f")
	free := inspect.Lock{Name: "free", Waiting: 2}
	for _, c := range []struct {
		f    lsFlags
		l    inspect.Lock
		want bool
	}{
		{lsFlags{}, held, true},
		{lsFlags{}, free, true},
		{lsFlags{host: "web-3"}, held, true},
		{lsFlags{host: "web-3.example.com"}, held, true},
		{lsFlags{host: "web"}, held, false},
		{lsFlags{host: "web-3"}, free, false},
		{lsFlags{held: duration(time.Minute)}, held, false}, // longer than, not as long as
		{lsFlags{held: duration(59 * time.Second)}, held, true},
		{lsFlags{held: duration(time.Second)}, foreign, false},
		{lsFlags{held: duration(time.Second)}, free, false},
		{lsFlags{waiting: true}, held, false},
		{lsFlags{waiting: true}, free, true},
	} {
		if got := c.f.wants(c.l); got != c.want {
			t.Errorf("%+v wants %s: %v", c.f, c.l.Name, got)
		}
	}
}

func TestListOrder(t *testing.T) {
	for sort, want := range map[string]string{"age": "b d a c", "waiters": "c a d b"} {
		list := []inspect.Lock{
			heldBy("a", "h", time.Second, 3), heldBy("b", "h", time.Hour, 0), heldBy("c", "h", 0, 9), heldBy("d", "h", time.Minute, 3),
		}
		(&lsFlags{sort: sort}).arrange(list)
		var names []string
		for _, l := range list {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %s: %s, want %s", sort, got, want)
		}
	}
}

// The first page is on the screen before the next lock is read, and all pages have
// the same columns. An error ends the list after what was read.
func TestListIsStreamed(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	written := func() string {
		b, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	broken := errors.New("the server is gone")
	var locks iter.Seq2[inspect.Lock, error] = func(yield func(inspect.Lock, error) bool) {
		for n := range pageful + 1 {
			if early := written(); n < pageful && early != "" || n == pageful && strings.Count(early, "\n") != pageful+1 {
				t.Errorf("before lock %d was read there were %d lines", n, strings.Count(early, "\n"))
			}
			if !yield(heldBy("lock-"+strconv.Itoa(n), "h", 0, 0), nil) {
				return
			}
		}
		if yield(heldBy(strings.Repeat("long", 30), "h", 0, 0), nil) {
			yield(inspect.Lock{}, broken)
		}
	}
	a := newApp(out, out, out)
	defer a.talk.close()
	found, err := a.listTable(locks)
	if found != pageful+2 || !errors.Is(err, broken) {
		t.Errorf("%d found, %v", found, err)
	}
	lines := strings.Split(strings.TrimSpace(written()), "\n")
	if len(lines) != pageful+3 || !strings.HasPrefix(lines[0], "NAME ") {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	at := strings.Index(lines[0], "HOLDER")
	for _, line := range lines[1:] {
		if string([]rune(line)[at:at+7]) != "h pid 1" {
			t.Errorf("other columns than those of the first page: %q", line)
		}
	}
}

// Numbers are never cut, and neither is a note when it is alone.
func TestLayout(t *testing.T) {
	long := strings.Repeat("n", 100)
	lock := heldBy(long, long, 100*24*time.Hour, 1234567)
	lock.Holders[0].Late, lock.Holders[0].Silent = 90*time.Second, true
	for _, page := range []int{narrowest, 60, width, 200, 400} {
		p := lister{page: page}
		first := p.lines([]inspect.Lock{heldBy("a", "h", time.Second, 0), heldBy(long, "h", time.Second, 0)})
		lines := append(first, p.lines([]inspect.Lock{lock})...)
		for n, line := range lines {
			if got := utf8.RuneCountInString(line); page >= 60 && n < 3 && got > page {
				t.Errorf("page of %d: %d characters: %s", page, got, line)
			}
		}
		for _, want := range []string{"100d00h", "1234567", "silent"} {
			if !strings.Contains(lines[3], want) {
				t.Errorf("page of %d: %s is missing in: %s", page, want, lines[3])
			}
		}
	}
}

func TestListNotes(t *testing.T) {
	view := func(unnamed int) *inspect.View { return &inspect.View{Unnamed: unnamed} }
	for _, c := range []struct {
		f    lsFlags
		v    *inspect.View
		n    int
		want string
	}{
		{lsFlags{}, view(0), 1, ""},
		{lsFlags{}, view(0), 0, "no locks|locks of other programs are found with --scan"},
		{lsFlags{pattern: "x"}, view(0), 0, "no locks match|locks of other programs are found with --scan"},
		{lsFlags{scan: true}, view(3), 0, "no locks"},
		{lsFlags{}, view(7), 2, "7 leases and waits are missing here, since their processes have more than they can name; --scan finds them"},
		{lsFlags{scan: true}, view(7), 2, ""},
	} {
		if got := strings.Join(c.f.notes(c.v, c.n), "|"); got != c.want {
			t.Errorf("%+v, %d found: %q, want %q", c.f, c.n, got, c.want)
		}
	}
	l := heldBy("a", "h", time.Hour, 0)
	l.Holders[0].Silent, l.Holders[0].Late, l.Holders[0].Detached, l.Holders[0].Broken = true, time.Minute, true, &inspect.BrokenBy{}
	if got := notes(l.Holders...); got != "silent, broken, late 1m00s, detached" {
		t.Errorf("notes %q", got)
	}
}

// A list that could not be read to its end is no JSON, and an empty one is.
func TestListJSON(t *testing.T) {
	for _, c := range []struct {
		locks int
		err   error
		end   string
	}{{0, nil, "[]\n"}, {2, nil, "  }\n]\n"}, {1, errors.New("gone"), "  }"}} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		a := newApp(out, out, out)
		found, err := a.listJSON(func(yield func(inspect.Lock, error) bool) {
			for range c.locks {
				if !yield(heldBy("a", "h", 0, 0), nil) {
					return
				}
			}
			if c.err != nil {
				yield(inspect.Lock{}, c.err)
			}
		})
		a.talk.close()
		b, _ := os.ReadFile(out.Name())
		out.Close()
		if found != c.locks || !errors.Is(err, c.err) || !bytes.HasSuffix(b, []byte(c.end)) {
			t.Errorf("%d locks, %v: found %d, %v, and wrote %q", c.locks, c.err, found, err, b)
		}
	}
}
