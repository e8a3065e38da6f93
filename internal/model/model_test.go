package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/driver"
)

// fixture is a store with a clock and inboxes of its own.
type fixture struct {
	*Store
	us        int64
	ears      map[string]int64
	published []string
}

var (
	five  = []string{"lock", "queue", "fence", "readers", "broken"}
	four  = five[:4]
	marks = []string{"readers", "marks"}
)

// keysOf returns the keys that an operation takes.
func keysOf(name string) []string {
	switch name {
	case "renew":
		return []string{"lock", "readers", "marks"}
	case "sem_renew":
		return []string{"lock", "lock", "marks"}
	case "inspect", "break":
		return five
	case "roll":
		return []string{"readers", "queue", "fence", "limit", "marks"}
	case "mark":
		return marks
	case "fate":
		return []string{"fence", "marks", "broken"}
	case "announce":
		return []string{"procs", "proc"}
	case "roster":
		return []string{"procs"}
	case "note", "events":
		return []string{"events"}
	}
	return four // the fourth is the limit of a semaphore
}

func newFixture() *fixture {
	f := &fixture{us: 1_000_000, ears: map[string]int64{}}
	f.Store = New(Env{
		Now:       func() int64 { return f.us },
		Listeners: func(channel string) int64 { return f.ears[channel] },
		Publish:   func(channel, payload string) { f.published = append(f.published, channel+" "+payload) },
		SPublish:  func(channel, payload string) { f.published = append(f.published, "slot "+channel+" "+payload) },
	})
	return f
}

// run runs an operation that must not fail, and returns its reply as text.
func (f *fixture) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	reply, known, err := f.Run(name, keysOf(name), args)
	if !known || err != nil {
		t.Fatalf("%s %q: known %v, %v", name, args, known, err)
	}
	return strings.Trim(fmt.Sprint(reply), "[]")
}

// TestLifeOfALock is the protocol, step by step.
func TestLifeOfALock(t *testing.T) {
	f := newFixture()
	f.ears["in:b"], f.ears["in:c"] = 1, 1
	for _, step := range []struct {
		after int64 // µs
		what  string
		args  []string
		want  string
	}{
		{0, "acquire", []string{"a", "15000", "", "0", "x"}, "granted 1000000 15000 1000000 0 0  0"},
		{0, "acquire", []string{"b", "15000", "in:b", "0", "x"}, "waits 0 15000 1000000 1 1 a:1000000 1000000"},
		{0, "acquire", []string{"dead", "15000", "in:d", "0", "x"}, "waits 0 15000 1000000 2 0 a:1000000 1000001"},
		{0, "acquire", []string{"c", "1500", "in:c", "0", "x"}, "waits 0 15000 1000000 3 1 a:1000000 1000002"},
		{5e6, "renew", []string{"a", "15000"}, "renewed 1000000 15000 0 0 0 a:1000000"},
		{0, "release", []string{"a", "", "0"}, "handed 1000000 0 0 0 0 b:6000000"},
		{0, "release", []string{"a", "", "0"}, "other 0 2000 0 0 0 b:6000000"},
		{1e6, "renew", []string{"b", "15000"}, "renewed 6000000 15000 0 0 0 b:6000000"},
		{0, "release", []string{"b", "", "0"}, "handed 6000000 0 0 0 0 c:7000000"},
		{2e6, "acquire", []string{"e", "100", "", "0", "x"}, "granted 9000000 100 9000000 0 0  0"},
		{0, "resume", []string{"e", "f", "3000"}, "granted 9000001 3000 9000000 0 0 "},
		{0, "renew", []string{"e", "100"}, "other 0 3000 0 0 0 f:9000001"},
		{0, "release", []string{"f", "", "500"}, "released 9000001 500 0 0 0 "},
		{0, "inspect", []string{"9"}, "z1-rest:9000001 9000001 500 9000000 0 "},
	} {
		f.us += step.after
		if got := f.run(t, step.what, step.args...); got != step.want {
			t.Fatalf("%s %q: %q, want %q", step.what, step.args, got, step.want)
		}
	}
	want := []string{"in:b grant b 6000000 6000000 2000 lock", "in:d next dead 2000 lock", "in:c grant c 7000000 7000000 1500 lock"}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
}

func TestExpiryIsAfterTheDeadline(t *testing.T) {
	f := newFixture()
	_ = f.Set("k", "v", 1)
	for _, tt := range []struct{ us, left int64 }{{1_000_000, 1}, {1_000_999, 1}, {1_001_000, 0}, {1_001_999, 0}, {1_002_000, -2}} {
		f.us = tt.us
		f.Begin()
		if got := f.PTTL("k"); got != tt.left {
			t.Errorf("at %d µs %d ms are left, want %d", tt.us, got, tt.left)
		}
	}
}

func TestExpiredKeysAreSwept(t *testing.T) {
	f := newFixture()
	for i := range 20_000 {
		f.us += 1000
		f.Begin()
		_ = f.Set(fmt.Sprint(i), "", 10)
	}
	if n := len(f.keys); n > 200 {
		t.Errorf("%d keys are in memory, and at most 12 have not expired", n)
	}
}

// TestPromises holds the KEEPS lines of the scripts over random operations:
// fences grow, no limit is shortened, nobody but the holder ends a lock.
func TestPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	f := newFixture()
	f.ears["in"] = 1
	fence, tokens := "", []string{"a", "b", "c", "d"}
	for range 50_000 {
		f.us += r.Int64N(3_000) * r.Int64N(300)
		f.Begin()
		before, held, _ := f.Get("lock")
		left := f.PTTL("lock")
		token, what := tokens[r.IntN(4)], []string{"acquire", "acquire", "release", "renew"}[r.IntN(4)]
		ttl, inbox := fmt.Sprint(1+r.IntN(3000)), []string{"", "-", "in", "dead"}[r.IntN(4)]
		f.run(t, what, map[string][]string{
			"acquire": {token, ttl, inbox, "0", "x"}, "release": {token, "", "0"}, "renew": {token, ttl},
		}[what]...)

		after, holds, _ := f.Get("lock")
		switch {
		case held && after != before && (what != "release" || !owns(before, token)):
			t.Fatalf("%s by %s turned %q into %q", what, token, before, after)
		case held && after == before && f.PTTL("lock") < left:
			t.Fatalf("%s shortened %d ms to %d", what, left, f.PTTL("lock"))
		case holds && f.PTTL("lock") < 0:
			t.Fatalf("after %s the lock never expires", what)
		case !holds && what != "renew" && f.exists("queue"):
			t.Fatalf("after %s the lock is free and somebody waits", what)
		}
		now, _, _ := f.Get("fence")
		if holds && after != before && (len(now) < len(fence) || now <= fence && len(now) == len(fence)) {
			t.Fatalf("the fence went from %s to %s", fence, now)
		}
		fence = now
	}
}

func TestWrongTypesAreErrorsOfTheServer(t *testing.T) {
	for _, key := range four[:3] {
		f := newFixture()
		f.MakeList(key)
		_, _, err := f.Run("acquire", four, []string{"a", "100", "", "0", "x"})
		var se *driver.ServerError
		if !errors.As(err, &se) || se.Code() != "WRONGTYPE" {
			t.Errorf("%s is a list: %v", key, err)
		}
		if n := len(f.Keys()); n != 1 {
			t.Errorf("%s is a list: %d keys, so the error left something half done", key, n)
		}
	}
}

func TestBadCallsAreRefused(t *testing.T) {
	f := newFixture()
	for name, args := range map[string][]string{
		"acquire": {"a", "soon", "", "0", "x"}, "release": {"a"}, "renew": {"a", ""}, "resume": {"a", "b", "x"}, "inspect": {"-1"},
		"sem_acquire": {"a", "soon", "", "0", "x", "1"}, "sem_release": {"a", "", ""}, "sem_renew": {"a", ""}, "sem_limit": {"few"},
		"break": {"a", "ask", ""}, "read_acquire": {"a", "1", "", "soon", "r"}, "downgrade": {"a", "soon"}, "mark": {"a"}, "fate": {}, "roll": {"1", "-1"}, "announce": {"id", "text", "soon"}, "note": {"all", "1", "text"}, "events": {"x", "1"},
	} {
		if _, known, err := f.Run(name, keysOf(name), args); !known || err == nil {
			t.Errorf("%s %q: known %v, %v", name, args, known, err)
		}
	}
	if _, known, _ := f.Run("other", nil, nil); known {
		t.Error("an operation that does not exist is known")
	}
}

// TestSortedSet compares with the plainest way to do the same.
func TestSortedSet(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	f := newFixture()
	var want []Scored
	for range 4_000 {
		m := Scored{fmt.Sprint(r.IntN(50)), float64(r.IntN(10))}
		at := slices.IndexFunc(want, func(x Scored) bool { return x.Member == m.Member })
		if r.IntN(2) == 0 {
			added, _ := f.ZAdd("z", m.Member, m.Score)
			if added != (at < 0) {
				t.Fatalf("ZADD says %v", added)
			}
			if added {
				want = append(want, m)
			}
		} else {
			removed, _ := f.ZRem("z", m.Member)
			if removed != (at >= 0) {
				t.Fatalf("ZREM says %v", removed)
			}
			if removed {
				want = slices.Delete(want, at, at+1)
			}
		}
		slices.SortFunc(want, compare)
		got, _ := f.ZRange("z")
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if f.exists("z") != (len(want) > 0) {
			t.Fatal("an empty set is no key")
		}
	}
}
