package model

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zamok-go/zamok/driver"
)

func TestClientsAreListedWhileTheirTextIsThere(t *testing.T) {
	f := newFixture()
	f.story(t, []step{
		{0, "roster", nil, "1000"},
		{0, "announce", []string{"a", "text", "500"}, "OK"},
		{0, "announce", []string{"b", "text", "90000"}, "OK"},
		{0, "roster", nil, "1000 a 1500 b 91000"},
		{0, "announce", []string{"b", "text", "2000"}, "OK"},
		{1500e3, "roster", nil, "2500 a 1500 b 3000"},
		{1e3, "roster", nil, "2501 b 3000"},
		{0, "announce", []string{"b", "", "0"}, "OK"},
		{0, "roster", nil, "2501"},
	})
	if n := len(f.Keys()); n != 0 {
		t.Errorf("%d keys are left of clients that are gone: %q", n, f.Keys())
	}
}

// TestEvents: ids grow, the oldest go, and a reader who knows one goes on there.
func TestEvents(t *testing.T) {
	f := newFixture()
	f.story(t, []step{
		{0, "events", []string{"", "9"}, "1000"},
		{0, "note", []string{"3", "5000", "a", "b"}, "OK"},
		{0, "events", []string{"", "9"}, "1000 1000-0 a 1000-1 b"},
		{-10e3, "note", []string{"3", "5000", "c"}, "OK"},
		{10e3, "note", []string{"3", "5000", "d"}, "OK"},
		{0, "events", []string{"", "2"}, "1000 1000-2 c 1000-3 d"},
		{0, "events", []string{"", "9"}, "1000 1000-1 b 1000-2 c 1000-3 d"},
		{0, "events", []string{"1000-1", "1"}, "1000 1000-2 c"},
		{0, "events", []string{"999", "1"}, "1000 1000-1 b"},
		{1e3, "note", []string{"3", "5000", "e"}, "OK"},
		{0, "events", []string{"1000-3", "9"}, "1001 1001-0 e"},
		{5001e3, "events", []string{"", "9"}, "6002"},
	})
}

// TestWrongTypesOfTheOthers: nothing is half done either.
func TestWrongTypesOfTheOthers(t *testing.T) {
	for _, tt := range []struct {
		key, name string
		args      []string
	}{
		{"broken", "inspect", []string{"1"}},
		{"queue", "break", []string{"z1/a", "now", "", ""}},
		{"lock", "break", []string{"z1/a", "now", "", ""}},
		{"procs", "announce", []string{"a", "text", "9"}},
		{"procs", "announce", []string{"a", "", "0"}},
		{"procs", "roster", nil},
		{"events", "note", []string{"3", "9", "a"}},
		{"events", "events", []string{"", "9"}},
	} {
		f := newFixture()
		f.MakeList(tt.key)
		_, _, err := f.Run(tt.name, keysOf(tt.name), tt.args)
		var se *driver.ServerError
		if !errors.As(err, &se) || se.Code() != "WRONGTYPE" {
			t.Errorf("%s, %s is a list: %v", tt.name, tt.key, err)
		}
		if got := fmt.Sprint(f.Keys()); got != "["+tt.key+"]" {
			t.Errorf("%s, %s is a list: the keys are %s", tt.name, tt.key, got)
		}
	}
}
