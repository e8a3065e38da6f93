package cli

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zamok-go/zamok"
)

// What others are told of a process has limits, and no half of a character.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 5, "abc"}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"жж", 3, "ж"}, {"a\xffb", 3, "ab"}, {"", 3, ""}} {
		if got := cut(c.s, c.n); got != c.want || !utf8.ValidString(got) {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// A ZAMOK_TOKEN that is none must not keep anybody from locking.
func TestUnder(t *testing.T) {
	const token = "z1/web-1/7/AAAAAAAAAAAAAAAA/1"
	for text, want := range map[string]string{token: token, "": "", "secret": "", "z1/" + strings.Repeat("a", 300): ""} {
		t.Setenv("ZAMOK_TOKEN", text)
		if got := under(); got != want {
			t.Errorf("with ZAMOK_TOKEN=%q it is %q, want %q", text, got, want)
		}
	}
}

// Why a lock was lost, as zamok run says it.
func TestReason(t *testing.T) {
	next := zamok.Holder{Host: "web-2", PID: 7, Token: "z1/web-2/7/A/1"}
	for want, lost := range map[string]*zamok.LostError{
		"key deleted": {Reason: zamok.LostDeleted},
		"taken by another, now held by web-2 pid 7":                 {Reason: zamok.LostTaken, By: next},
		"not renewed in time: EOF":                                  {Reason: zamok.LostExpired, Err: errors.New("zamok: EOF")},
		"broken by alice@web-1: disk full":                          {Reason: zamok.LostBroken, Operator: "alice@web-1", Why: "disk full"},
		"broken by alice@web-1: disk full, now held by web-2 pid 7": {Reason: zamok.LostBroken, Operator: "alice@web-1", Why: "disk full", By: next},
		"broken by an operator":                                     {Reason: zamok.LostBroken},
		"broken by an operator: nobody said who":                    {Reason: zamok.LostBroken, Why: "nobody said who"},
	} {
		if got := reason(lost); got != want {
			t.Errorf("%+v is worded %q, want %q", lost, got, want)
		}
	}
}
