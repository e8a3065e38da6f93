package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLifeOfASemaphore is the protocol of semaphores, step by step.
func TestLifeOfASemaphore(t *testing.T) {
	f := newFixture()
	f.ears["in:c"], f.ears["in:d"] = 1, 1
	f.story(t, []step{
		{0, "sem_limit", []string{""}, "set 0 0 1000000 0 0  0 0"},
		{0, "sem_acquire", []string{"a", "15000", "", "0", "x", "2"}, "granted 1000000 15000 1000000 0 0  0 2 1"},
		{0, "sem_acquire", []string{"b", "9000", "", "0", "x", "2"}, "granted 1000001 9000 1000000 0 0  0 2 2"},
		{0, "sem_acquire", []string{"b", "1000", "", "0", "x", "2"}, "granted 1000002 9000 1000000 2 0  0 2 2"},
		{0, "sem_acquire", []string{"c", "5000", "", "0", "x", "2"}, "held 0 9000 1000000 0 0 b 0 2 2"},
		{0, "sem_acquire", []string{"c", "5000", "in:c", "0", "x", "2"}, "waits 0 9000 1000000 1 1 b 1000000 2 2"},
		{0, "sem_acquire", []string{"dead", "5000", "in:x", "0", "x", "2"}, "waits 0 9000 1000000 2 0 b 1000001 2 2"},
		{0, "sem_acquire", []string{"d", "5000", "in:d", "0", "x", "2"}, "waits 0 9000 1000000 3 1 b 1000002 2 2"},
		{0, "sem_acquire", []string{"e", "5000", "-", "0", "x", "2"}, "waits 0 9000 1000000 4 0 b 1000003 2 2"},
		{1e6, "sem_release", []string{"a", "", "2"}, "handed 0 0 0 0 0 "},
		{0, "sem_release", []string{"a", "", "2"}, "absent 0 0 0 0 0 "},
		{1e6, "sem_renew", []string{"c", "5000"}, "renewed 0 5000 0 0 0 "},
		{0, "sem_renew", []string{"c", "0"}, "renewed 0 5000 0 0 0 "},
		{0, "sem_limit", []string{"4"}, "set 0 0 3000000 0 0  4 4"},
		{1e6, "sem_renew", []string{"e", "5000"}, "absent 0 -2 0 0 0 "}, // a poller gets 1 s, and that is over
		{0, "sem_limit", []string{"1"}, "set 0 0 4000000 0 0  1 3"},
		{0, "sem_acquire", []string{"e", "5000", "", "0", "x", "9"}, "held 0 1000 4000000 0 0 d 0 1 3"},
		{6e6, "sem_acquire", []string{"e", "5000", "", "0", "x", "9"}, "granted 10000000 5000 10000000 0 0  0 1 1"},
		{0, "sem_limit", []string{"0"}, "set 0 0 10000000 0 0  0 1"},
		{0, "sem_release", []string{"e", "", "9"}, "released 0 0 0 0 0 "},
	})
	want := []string{"in:c grant c 2000000 2000000 2000 lock", "in:x next dead 2000 lock", "in:d grant d 3000000 3000000 2000 lock"}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
	if left := f.Keys(); !slices.Equal(left, []string{"fence"}) {
		t.Errorf("left behind: %q", left)
	}
}

// TestPermitEndsAtItsEnd: at the very ms it is nobody's, though the key is there.
func TestPermitEndsAtItsEnd(t *testing.T) {
	f := newFixture()
	f.run(t, "sem_acquire", "a", "10", "", "0", "x", "1")
	f.us += 9_999
	if got := f.run(t, "sem_renew", "a", "0"); got != "renewed 0 1 0 0 0 " {
		t.Errorf("in the last ms: %s", got)
	}
	f.us++
	if got := f.run(t, "sem_release", "a", "", "1"); got != "absent 0 0 0 0 0 " {
		t.Errorf("at its end: %s", got)
	}
}

// TestTwoEntriesOfOneToken: a waiter that changed its inbox has two. The second is
// no second permit, does not shorten the first, is not told of, and costs whoever
// stands behind it nothing.
func TestTwoEntriesOfOneToken(t *testing.T) {
	f := newFixture()
	f.ears["in:a"], f.ears["in:b"] = 1, 1
	for _, args := range [][]string{{"x", "-"}, {"a", "in:a"}, {"a", "-"}, {"b", "in:b"}} {
		f.run(t, "sem_acquire", args[0], "15000", args[1], "0", "x", "1")
	}
	f.run(t, "sem_release", "x", "", "1")
	f.run(t, "sem_renew", "a", "15000")
	if got := f.run(t, "sem_limit", "2"); got != "set 0 0 1000000 0 0  2 2" {
		t.Errorf("with two permits: %s", got)
	}
	if got := f.run(t, "sem_renew", "a", "0"); got != "renewed 0 15000 0 0 0 " {
		t.Errorf("the first: %s", got)
	}
	want := []string{"in:a grant a 1000001 1000000 2000 lock", "in:b grant b 1000003 1000000 2000 lock"}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
}

// crowd is a semaphore at one moment.
type crowd struct {
	permits  map[string]int64 // token → end, of those that have not ended
	waiting  []string         // who could be served, in the order of its first ticket
	deadline int64
}

// crowd looks at the semaphore. Who asks is alive, even by an entry that nobody hears.
func (f *fixture) crowd(asks string) crowd {
	c := crowd{permits: map[string]int64{}, deadline: f.Deadline("lock")}
	all, _ := f.ZRange("lock")
	for _, m := range all {
		if int64(m.Score) > f.ms {
			c.permits[m.Member] = int64(m.Score)
		}
	}
	queue, _ := f.ZRange("queue")
	for _, m := range queue {
		w, ok := parseWaiter(m.Member)
		if ok && (w.inbox == "-" || f.ears[w.inbox] > 0 || w.token == asks) && !slices.Contains(c.waiting, w.token) {
			c.waiting = append(c.waiting, w.token)
		}
	}
	return c
}

// TestPromisesOfSemaphores holds the KEEPS lines over random operations: never more
// permits than the limit in force when one is given, each with an end that never
// comes earlier, in the order of tickets, none left to those who wait, and nothing
// left of all that in the end.
func TestPromisesOfSemaphores(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	f := newFixture()
	f.ears["in:0"], f.ears["in:1"] = 1, 1
	tokens := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	const longest = 3000
	for n := range 100_000 {
		f.us += r.Int64N(3_000) * r.Int64N(300)
		f.Begin()
		if r.IntN(20) == 0 { // a client comes or goes
			f.ears[fmt.Sprint("in:", r.IntN(2))] = int64(r.IntN(3))
		}
		token, ttl, own := tokens[r.IntN(len(tokens))], fmt.Sprint(1+r.IntN(longest)), fmt.Sprint(1+r.IntN(4))
		inbox := []string{"", "-", "in:0", "in:1", "in:2"}[r.IntN(5)]
		o := op{what: []string{"sem_acquire", "sem_acquire", "sem_acquire", "sem_release", "sem_renew", "sem_limit"}[r.IntN(6)], token: token}
		switch o.what {
		case "sem_acquire":
			o.args = []string{token, ttl, inbox, "0", "x", own}
		case "sem_release":
			o.args = []string{token, "x|" + token + "|" + ttl + "|-", own}
		case "sem_renew":
			o.args = []string{token, ttl}
		case "sem_limit":
			own, o.args = "0", []string{[]string{"", "", "0", "1", "3"}[r.IntN(5)]}
		}
		before, told := f.crowd(o.alive()), len(f.published)
		reply := f.run(t, o.what, o.args...)
		o.limit, _ = strconv.Atoi(own)
		if v, ok, _ := f.Get("readers"); ok {
			o.limit, _ = strconv.Atoi(v)
		}
		if wrong := o.wrong(before, f.crowd(""), f.published[told:]); wrong != "" {
			t.Fatalf("operation %d, %s %q: %s: %s\nbefore %+v\nafter  %+v", n, o.what, o.args, reply, wrong, before, f.crowd(""))
		}
		if left := f.PTTL("lock"); left == -1 || left > longest {
			t.Fatalf("after %s the semaphore lasts %d ms", o.what, left)
		}
	}
	f.us += (queueTTL + 1) * 1000
	f.run(t, "sem_limit", "0")
	if left := f.Keys(); !slices.Equal(left, []string{"fence"}) {
		t.Errorf("left behind: %q", left)
	}
}

// op is one operation, and how many permits there are for it.
type op struct {
	what, token string
	args        []string
	limit       int
}

// alive is who shows by this operation that it waits.
func (o op) alive() string {
	if o.what == "sem_acquire" {
		return o.token
	}
	return ""
}

// wrong says which promise the operation broke.
func (o op) wrong(before, after crowd, told []string) string {
	if o.what == "sem_release" { // it may be served again, by a second entry
		delete(before.permits, o.token)
	}
	fresh := map[string]bool{}
	for token, end := range after.permits {
		if old, had := before.permits[token]; !had {
			fresh[token] = true
		} else if end < old {
			return token + "'s permit ends earlier"
		}
		if end > after.deadline {
			return "the semaphore ends before " + token + "'s permit"
		}
	}
	for token := range before.permits {
		if _, has := after.permits[token]; !has {
			return token + " lost its permit"
		}
	}
	switch {
	case len(fresh) > 0 && len(after.permits) > o.limit:
		return "a permit too many"
	case len(fresh) > 0 && o.what == "sem_renew":
		return "a renewal made a permit"
	case o.what != "sem_renew" && len(after.permits) < o.limit && len(after.waiting) > 0 && !(o.what == "sem_acquire" && before.permits[o.token] > 0):
		return "a permit is left to those who wait"
	}
	for _, m := range told {
		if words := strings.Fields(m); words[1] == "grant" && !fresh[words[2]] {
			return "told of a permit that it did not get: " + m
		}
	}
	return o.order(before, fresh)
}

// order: whoever got a permit has nobody before it who could have had it.
func (o op) order(before crowd, fresh map[string]bool) string {
	passed, stood := "", false
	for _, token := range before.waiting {
		stood = stood || token == o.token
		_, has := before.permits[token]
		switch {
		case o.what == "sem_release" && token == o.token: // it leaves one of its places
		case fresh[token] && passed != "":
			return token + " was served before " + passed
		case !fresh[token] && !has && passed == "":
			passed = token
		}
	}
	if passed != "" && fresh[o.token] && !stood {
		return o.token + ", who came last, was served before " + passed
	}
	return ""
}
