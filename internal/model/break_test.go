package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// step is one operation of a story, and what it must answer.
type step struct {
	after int64 // µs
	what  string
	args  []string
	want  string
}

func (f *fixture) story(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		f.us += s.after
		if got := f.run(t, s.what, s.args...); got != s.want {
			t.Fatalf("%s %q: %q, want %q", s.what, s.args, got, s.want)
		}
	}
}

// TestBreakByAsking: who is asked keeps the lock, and can only end it.
func TestBreakByAsking(t *testing.T) {
	f := newFixture()
	f.ears["in:b"] = 1
	f.story(t, []step{
		{0, "break", []string{"z1/a", "ask", "eve!stuck", "in:a"}, "absent 0 -2 0 0 0 "},
		{0, "acquire", []string{"z1/a", "15000", "", "0", "x"}, "granted 1000000 15000 1000000 0 0  0"},
		{0, "acquire", []string{"z1/b", "15000", "in:b", "0", "x"}, "waits 0 15000 1000000 1 1 z1/a:1000000 1000000"},
		{0, "break", []string{"z1/b", "ask", "eve!stuck", "in:a"}, "other 0 15000 0 0 0 z1/a:1000000"},
		{1e6, "break", []string{"z1/a", "ask", "eve!stuck", "in:a"}, "asked 1000000 14000 0 0 0 z1/a:1000000!eve!stuck"},
		{1e6, "break", []string{"z1/a", "ask", "bob!too", ""}, "asked 1000000 13000 0 0 0 z1/a:1000000!eve!stuck"},
		{0, "renew", []string{"z1/a", "15000"}, "broken 1000000 13000 0 0 0 z1/a:1000000!eve!stuck"},
		{0, "acquire", []string{"z1/a", "15000", "", "0", "x"}, "granted 1000000 13000 3000000 2 0  0"},
		{0, "resume", []string{"z1/a", "z1/c", "15000"}, "broken 0 13000 0 0 0 z1/a:1000000!eve!stuck"},
		{0, "release", []string{"z1/a", "", "9000"}, "handed 1000000 0 0 0 0 z1/b:3000000"},
		{0, "renew", []string{"z1/b", "15000"}, "renewed 3000000 15000 0 0 0 z1/b:3000000"},
		{0, "release", []string{"z1/b", "", "9000"}, "released 3000000 9000 0 0 0 "},
		{0, "break", []string{"z1-rest/b", "ask", "eve!stuck", "in:b"}, "deaf 3000000 9000 0 0 0 z1-rest/b:3000000"},
	})
	want := []string{"in:a break z1/a lock", "in:b grant z1/b 3000000 3000000 2000 lock"}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
}

// TestBreakAtOnce: the first who waits has it, and the holder can read why.
func TestBreakAtOnce(t *testing.T) {
	f := newFixture()
	f.ears["in:b"] = 1
	f.story(t, []step{
		{0, "acquire", []string{"z1/a", "15000", "", "0", "x"}, "granted 1000000 15000 1000000 0 0  0"},
		{0, "acquire", []string{"dead", "15000", "in:d", "0", "x"}, "waits 0 15000 1000000 1 0 z1/a:1000000 1000000"},
		{0, "acquire", []string{"z1/b", "15000", "in:b", "0", "x"}, "waits 0 15000 1000000 2 1 z1/a:1000000 1000001"},
		{0, "break", []string{"z1/a", "now", "eve!stuck", "in:a"}, "handed 1000000 15000 0 0 0 z1/b:1000001"},
		{0, "break", []string{"z1/a", "now", "eve!stuck", "in:a"}, "taken 1000000 2000 0 0 0 z1/b:1000001"},
		{0, "break", []string{"z1/a", "ask", "eve!stuck", "in:a"}, "other 0 2000 0 0 0 z1/b:1000001"},
		{0, "inspect", []string{"9"}, "z1/b:1000001 1000001 2000 1000000 0 z1/a:1000000!eve!stuck"},
		{60e6, "inspect", []string{"9"}, " 1000001 -2 61000000 0 z1/a:1000000!eve!stuck"},
		{1e3, "inspect", []string{"9"}, " 1000001 -2 61001000 0 "},
	})
	want := []string{"in:b grant z1/b 1000001 1000000 2000 lock", "in:a break z1/a lock"}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
}

// TestBreakOfAForeignHolder: only the value that was shown.
func TestBreakOfAForeignHolder(t *testing.T) {
	long := fmt.Sprintf("%0300d", 7)
	for _, tt := range []struct{ value, shown, how, want string }{
		{"guest", "guest", "ask", "deaf 0 -1 0 0 0 guest"},
		{"guest", "guest", "now", "taken 0 -1 0 0 0 "},
		{"guest:7", "guest", "now", "other 0 -1 0 0 0 guest:7"},
		{"guests", "guest", "now", "other 0 -1 0 0 0 guests"},
		{long, long, "now", "taken 0 -1 0 0 0 "},
		{long, long[:256], "now", "other 0 -1 0 0 0 " + long},
		{"", "", "now", "taken 0 -1 0 0 0 "},
	} {
		f := newFixture()
		_ = f.Set("lock", tt.value, 0)
		if got := f.run(t, "break", tt.shown, tt.how, "eve!", ""); got != tt.want {
			t.Errorf("%.9q, %s: %q, want %q", tt.value, tt.how, got, tt.want)
		}
		if f.exists("broken") {
			t.Error("something stands under the key that nobody will ask")
		}
	}
}

// TestBreakWithoutTTL: what nothing raises must not last for ever.
func TestBreakWithoutTTL(t *testing.T) {
	f := newFixture()
	for _, value := range []string{"z1/a:7", "z1/a:7!bob!before"} {
		_ = f.Set("lock", value, 0)
		f.run(t, "break", "z1/a", "ask", "eve!stuck", "")
		if left := f.PTTL("lock"); left != 86_400_000 {
			t.Errorf("%s has %d ms left", value, left)
		}
	}
}

// look is what a lock was at one moment.
type look struct {
	value    string
	held     bool
	deadline int64
	first    string // the first waiter whom a hand-over would reach
}

func (f *fixture) look() look {
	value, held, _ := f.Get("lock")
	return look{value, held, f.Deadline("lock"), f.firstWaiter()}
}

// TestPromisesOfBreak holds the KEEPS lines that speak of operators over random
// operations: only whom the operator saw loses anything, who is asked loses
// nothing but what is to come, and no waiter is passed over.
func TestPromisesOfBreak(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	f := newFixture()
	f.ears["in"] = 1
	tokens := []string{"z1/a", "z1/b", "z1/c", "z1/d"}
	for range 50_000 {
		f.us += r.Int64N(3_000) * r.Int64N(300)
		f.Begin()
		before := f.look()
		token, ttl := tokens[r.IntN(4)], fmt.Sprint(1+r.IntN(3000))
		args := map[string][]string{
			"acquire": {token, ttl, []string{"", "-", "in", "dead"}[r.IntN(4)], "0", "x"}, "renew": {token, ttl},
			"release": {token, "", []string{"0", ttl}[r.IntN(2)]}, "resume": {token, tokens[r.IntN(4)], ttl},
			"break": {token, []string{"ask", "ask", "now"}[r.IntN(3)], "eve!stuck", ""},
		}
		what := []string{"acquire", "acquire", "release", "renew", "resume", "break"}[r.IntN(6)]
		f.run(t, what, args[what]...)

		after := f.look()
		if what == "break" {
			checkBreak(t, token, args[what][1], before, after)
		}
		marked, same := before.held && strings.Contains(before.value, mark), after.value == before.value
		switch {
		case marked && same && after.deadline != before.deadline:
			t.Fatalf("%s turned %+v into %+v", what, before, after)
		case marked && !same && what != "release" && what != "break":
			t.Fatalf("%s turned %q into %q", what, before.value, after.value)
		case after.held && after.deadline < 0:
			t.Fatalf("after %s the lock never expires", what)
		}
	}
}

func checkBreak(t *testing.T, token, how string, before, after look) {
	t.Helper()
	mine := before.held && owns(before.value, token)
	plain, _, _ := strings.Cut(before.value, mark)
	var ok bool
	switch {
	case !mine:
		ok = before == after
	case how == "ask":
		want := before
		want.value = plain + "!eve!stuck"
		ok = after == want
	case before.first == "":
		ok = !after.held
	default:
		ok = owns(after.value, before.first)
	}
	if !ok {
		t.Fatalf("break of %s, %s, turned %+v into %+v", token, how, before, after)
	}
}

// firstWaiter returns the token of the first in the queue whom a hand-over would
// reach, "" if there is none.
func (f *fixture) firstWaiter() string {
	all, _ := f.ZRange("queue")
	for _, m := range all {
		if w, ok := parseWaiter(m.Member); ok && (w.inbox == "-" || f.ears[w.inbox] > 0) {
			return w.token
		}
	}
	return ""
}
