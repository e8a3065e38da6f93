package zamokrueidis

import "testing"

// rueidis takes "ERR " off; other codes and messages without one must be told
// apart.
func TestWithCode(t *testing.T) {
	for text, want := range map[string]string{
		"unknown command 'NOSUCH'":              "ERR unknown command 'NOSUCH'",
		"user_script:1: own words script: f_00": "ERR user_script:1: own words script: f_00",
		"WRONGTYPE Operation against a key":     "WRONGTYPE Operation against a key",
		"NOPERM":                                "NOPERM",
		"EXEC without MULTI":                    "ERR EXEC without MULTI",
		"DB index is out of range":              "ERR DB index is out of range",
		"":                                      "ERR ",
	} {
		if got := withCode(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
