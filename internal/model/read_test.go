package model

import (
	"slices"
	"testing"
)

// TestLifeOfAReadWriteLock is the protocol of readers, step by step.
func TestLifeOfAReadWriteLock(t *testing.T) {
	f := newFixture()
	for _, inbox := range []string{"in:w", "in:r", "in:s", "in:v"} {
		f.ears[inbox] = 1
	}
	f.story(t, []step{
		{0, "read_acquire", []string{"a", "15000", "", "0", "r"}, "granted 1000000 15000 1000000 0 0  0"},
		{0, "read_acquire", []string{"b", "9000", "", "0", "r"}, "granted 1000001 9000 1000000 0 0  0"},
		{0, "acquire", []string{"w", "15000", "in:w", "0", "W"}, "waits 0 15000 1000000 1 1 b 1000000 0 2"},
		{0, "read_acquire", []string{"r", "15000", "", "0", "r"}, "held 0 15000 1000000 0 0 b 0 0 2"},
		{0, "read_acquire", []string{"r", "15000", "in:r", "0", "r"}, "waits 0 15000 1000000 2 1 b 1000001 0 2"},
		{0, "acquire", []string{"dead", "15000", "in:d", "0", "w"}, "waits 0 15000 1000000 3 0 b 1000002 0 2"},
		{0, "read_acquire", []string{"s", "1500", "in:s", "0", "r"}, "waits 0 15000 1000000 4 1 b 1000003 0 2"},
		{0, "acquire", []string{"v", "15000", "in:v", "0", "w"}, "waits 0 15000 1000000 5 1 b 1000004 0 2"},
		{1e6, "renew", []string{"b", "15000"}, "renewed 0 15000 0 0 0 "},
		{0, "release", []string{"b", "", "0"}, "released 0 0 0 0 0 "},
		{0, "inspect", []string{"0"}, "z1-read:1000001 1000001 14000 2000000 5 "},
		{0, "mark", []string{"a", "eve!stuck", "in:a", "lock"}, "asked 0 14000 0 0 0 a:0!eve!stuck"},
		{0, "renew", []string{"a", "15000"}, "broken 0 14000 0 0 0 a:0!eve!stuck"},
		{0, "roll", []string{"9", "1"}, "0 1000001 14000 2000000 5 1 1 a 16000 a:0!eve!stuck W|w|15000|in:w 1000000 1"},
		{0, "release", []string{"a", "", "9000"}, "handed 0 0 0 0 0 w:2000000"},
		{0, "fate", []string{"a"}, "2004095 a:0!eve!stuck"},
		{0, "downgrade", []string{"w", "15000"}, "granted 2000000 15000 2000000 0 0 "},
		{0, "downgrade", []string{"w", "15000"}, "granted 0 15000 2000000 0 0 "},
		{0, "roll", []string{"9", "9"}, "0 2004097 15000 2000000 1 3 3 s 3500  r 4000  w 17000  w|v|15000|in:v 1000004 1"},
		{3e6, "read_acquire", []string{"x", "5000", "", "0", "r"}, "held 0 12000 5000000 0 0 w 0 0 1"},
		{0, "release", []string{"v", "w|v|15000|in:v", "0"}, "other 0 12000 0 1 0 z1-read:2004097"},
		{0, "read_acquire", []string{"x", "5000", "", "0", "r"}, "granted 5000000 5000 5000000 0 0  0"},
		{0, "release", []string{"w", "", "0"}, "released 0 0 0 0 0 "},
		{0, "release", []string{"x", "", "0"}, "released 0 0 0 0 0 "},
	})
	want := []string{
		"in:a break a lock", "in:w grant w 2000000 2000000 2000 lock", "in:r next r 2000 lock",
		"in:r grant r 2004096 2000000 2000 lock", "in:s grant s 2004097 2000000 1500 lock", "in:v next v 15000 lock",
	}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
	left := f.Keys()
	slices.Sort(left)
	if !slices.Equal(left, []string{"fence", "marks"}) {
		t.Errorf("left behind: %q", left)
	}
}

// TestTwoEntriesOfOneReader: who is let in by one entry is not told of the other, or
// it would release, as nobody's, what it has.
func TestTwoEntriesOfOneReader(t *testing.T) {
	f := newFixture()
	f.ears["in:a"], f.ears["in:b"] = 1, 1
	f.run(t, "acquire", "w", "15000", "", "0", "w")
	for _, args := range [][]string{{"a", "in:a"}, {"a", "in:b"}, {"b", "in:b"}} {
		f.run(t, "read_acquire", args[0], "15000", args[1], "0", "r")
	}
	f.run(t, "release", "w", "", "0")
	want := []string{"in:a grant a 1000001 1000000 2000 lock", "in:b grant b 1000003 1000000 2000 lock"}
	if !slices.Equal(f.published, want) {
		t.Errorf("published %q, want %q", f.published, want)
	}
}

// TestReadersOutliveDamage: entries that are none, and a TTL that somebody took off,
// cost no reader what it has.
func TestReadersOutliveDamage(t *testing.T) {
	f := newFixture()
	f.run(t, "read_acquire", "a", "15000", "", "0", "r")
	_, _ = f.ZAdd("queue", "garbage", 1)
	if got := f.run(t, "read_acquire", "b", "1000", "", "0", "r"); got != "granted 1000001 1000 1000000 0 0  0" {
		t.Errorf("behind garbage: %s", got)
	}
	f.Persist("lock")
	f.Persist("readers")
	f.run(t, "renew", "b", "2000")
	for _, key := range []string{"lock", "readers"} {
		if left := f.PTTL(key); left != 15000 {
			t.Errorf("%s has %d ms left, and a reader 15000", key, left)
		}
	}
}

// TestReadersOfAnEarlierTime: who is in the set when the lock was somebody else's
// meanwhile does not read.
func TestReadersOfAnEarlierTime(t *testing.T) {
	f := newFixture()
	f.run(t, "read_acquire", "old", "15000", "", "0", "r")
	f.Del("lock")
	f.story(t, []step{
		{0, "renew", []string{"old", "0"}, "absent 0 -2 0 0 0 "},
		{0, "acquire", []string{"w", "15000", "", "0", "w"}, "granted 1000001 15000 1000000 0 0  0"},
		{0, "renew", []string{"old", "0"}, "other 0 15000 0 0 0 w:1000001"},
		{0, "downgrade", []string{"w", "9000"}, "granted 1000001 15000 1000000 0 0 "},
		{0, "renew", []string{"old", "0"}, "absent 0 -2 0 0 0 "},
		{0, "release", []string{"old", "", "0"}, "other 0 15000 0 0 0 z1-read:1000001"},
	})
}
