package cli

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

func TestRoundTick(t *testing.T) {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	at := func(clock string) time.Time {
		c, err := time.Parse("15:04:05.999", clock)
		if err != nil {
			t.Fatal(err)
		}
		return day.Add(c.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	for _, c := range []struct {
		every time.Duration
		now   string
		want  string // empty: refused
	}{
		{time.Minute, "12:00:00", "12:00:00"},
		{time.Minute, "12:00:00.3", "12:00:00"},
		{time.Minute, "11:59:59.7", "12:00:00"},
		{time.Minute, "12:00:15", "12:00:00"},
		{time.Minute, "12:00:15.001", ""},
		{time.Minute, "12:00:30", ""},
		{time.Minute, "12:00:44.999", ""},
		{time.Minute, "12:00:45", "12:01:00"},
		{5 * time.Minute, "12:01:15", "12:00:00"},
		{5 * time.Minute, "12:02:30", ""},
		{5 * time.Minute, "12:03:45", "12:05:00"},
		{time.Hour, "12:17:00", ""}, // 17 * * * *
		{time.Hour, "12:30:00", ""},
		{time.Hour, "12:10:00", "12:00:00"},
		{time.Second, "12:00:00.251", ""},
		{time.Second, "12:00:00.25", "12:00:00"},
	} {
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("IST", 5*3600+1800)} {
			f := &tickFlags{every: duration(c.every)}
			err := f.round(at(c.now).In(zone))
			var failed *failure
			switch {
			case c.want == "" && (!errors.As(err, &failed) || failed.code != exit.Config || failed.hint == ""):
				t.Errorf("%s with --every %v in %v: %v, want a refusal with %d", c.now, c.every, zone, err, exit.Config)
			case c.want != "" && (err != nil || !f.nominal.Equal(at(c.want)) || f.nominal.Location() != time.UTC):
				t.Errorf("%s with --every %v in %v: %v, %v; want %s", c.now, c.every, zone, f.nominal, err, c.want)
			}
		}
	}
}

// What two hosts take for the planned time is the same, if they take it at all and
// what their clocks say is less than half of --every apart.
func TestTicksOfTwoHosts(t *testing.T) {
	const every, step = time.Minute, 500 * time.Millisecond
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	taken := 0
	for a := began; a.Before(began.Add(every)); a = a.Add(step) {
		one := &tickFlags{every: duration(every)}
		if one.round(a) != nil {
			continue
		}
		for b := a; b.Before(a.Add(every / 2)); b = b.Add(step) {
			other := &tickFlags{every: duration(every)}
			if other.round(b) != nil {
				continue
			}
			taken++
			if !one.nominal.Equal(other.nominal) {
				t.Fatalf("%v is %v, and %v is %v", a, one.nominal, b, other.nominal)
			}
		}
	}
	if taken < 1000 {
		t.Errorf("only %d pairs were taken", taken)
	}
}

// What is no whole part of an hour would drift against crontabs.
func TestEvery(t *testing.T) {
	good := map[time.Duration]bool{}
	for _, d := range []time.Duration{time.Second, 2 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour} {
		good[d] = true
	}
	for _, d := range []time.Duration{0, 7 * time.Minute, 2 * time.Hour, 500 * time.Millisecond, 1500 * time.Millisecond, 24 * time.Hour} {
		good[d] = false
	}
	for every, want := range good {
		err := (&tickFlags{every: duration(every)}).round(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
		if (err == nil) != want {
			t.Errorf("--every %v: %v", every, err)
		}
	}
}

// Of two variables of the same name most programs see the first, which would be
// that of an outer zamok.
func TestWith(t *testing.T) {
	got := with([]string{"A=1", "B=2", "AB=3", "A=4"}, "A=5", "C=")
	if want := []string{"B=2", "AB=3", "A=5", "C="}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What is to be copied into a shell is one word there.
func TestQuoted(t *testing.T) {
	for s, want := range map[string]string{
		"mail/17": "mail/17", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "{a}b": "'{a}b'", "ж": "'ж'", "~": "'~'",
	} {
		if got := quoted(s); got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}
