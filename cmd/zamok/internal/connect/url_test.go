package connect

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	cases := map[string]Target{
		"redis://localhost":                             {Addrs: []string{"localhost:6379"}},
		"redis://localhost/":                            {Addrs: []string{"localhost:6379"}},
		"REDIS://10.0.0.7:7000/3":                       {Addrs: []string{"10.0.0.7:7000"}, DB: 3},
		"redis://[::1]:6380":                            {Addrs: []string{"[::1]:6380"}},
		"redis://[fe80::1]":                             {Addrs: []string{"[fe80::1]:6379"}},
		"rediss://app:s%3Acret@r.example:6380":          {TLS: true, Addrs: []string{"r.example:6380"}, User: "app", Password: "s:cret"},
		"redis://:p%40ss%2Fword%25@h":                   {Addrs: []string{"h:6379"}, Password: "p@ss/word%"},
		"redis://:a:b@h":                                {Addrs: []string{"h:6379"}, Password: "a:b"},
		"unix:///run/redis.sock":                        {Socket: "/run/redis.sock"},
		"unix://u:p@/run/a%40b.sock?db=2":               {Socket: "/run/a@b.sock", User: "u", Password: "p", DB: 2},
		"redis+sentinel://a,b:1,[::1]:26380/mymaster/4": {Addrs: []string{"a:26379", "b:1", "[::1]:26380"}, Master: "mymaster", DB: 4},
		"rediss+sentinel://u:p@a/m?sentinel_username=su&sentinel_password=s%26p": {TLS: true, Addrs: []string{"a:26379"}, Master: "m",
			User: "u", Password: "p", SentinelUser: "su", SentinelPassword: "s&p"},
		"redis+cluster://a,b:7001":       {Cluster: true, Addrs: []string{"a:6379", "b:7001"}},
		"rediss+cluster://u:p@[::1]:1/0": {Cluster: true, TLS: true, Addrs: []string{"[::1]:1"}, User: "u", Password: "p"},
	}
	for raw, want := range cases {
		got, err := ParseURL(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseURL(%q) = %s, %v; want %s", raw, fields(got), err, fields(want))
		}
	}
}

func TestParseURLNamesThePart(t *testing.T) {
	cases := map[string]string{
		"":                                    "text",
		"localhost:6379":                      "scheme",
		"localhost":                           "scheme",
		"u:hunter2@localhost:6379":            "scheme",
		"http://localhost":                    "scheme",
		"redis://":                            "host",
		"redis://:6379":                       "host",
		"redis://ho st":                       "text",
		"redis://host\n":                      "text",
		"redis://ho%73t":                      "host",
		"redis://::1:6379":                    "host",
		"redis://1::2":                        "host",
		"redis://[::1":                        "host",
		"redis://[10.0.0.1]":                  "host",
		"redis://a,b":                         "host",
		"redis://h:0":                         "port",
		"redis://h:65536":                     "port",
		"redis://h:+1":                        "port",
		"redis://h:":                          "port",
		"redis://[::1]6379":                   "port",
		"redis://app:hunter2":                 "port", // the host was forgotten
		"redis://h/x":                         "database",
		"redis://h/-1":                        "database",
		"redis://h/1/2":                       "database",
		"redis://h?db=1":                      "query",
		"redis://h?timeout=3":                 "query",
		"redis://h?hunter2":                   "query",
		"redis://h#x":                         "text",
		"redis://hunter2@h":                   "user",
		"redis://u:@h":                        "password",
		"redis://:hun/ter2@h":                 "password",
		"redis://:hun?ter2@h":                 "password",
		"redis://:hun@ter2@h":                 "password",
		"redis://:hun%ter2@h":                 "password",
		"redis://:hunter2%2@h":                "password",
		"unix://run/redis.sock":               "socket",
		"unix:///":                            "socket",
		"unix:///run/?db=0":                   "socket",
		"unix:///a%00b":                       "socket",
		"unix:///a?db=":                       "database",
		"unix:///a?db=1&db=2":                 "query",
		"redis+sentinel://a,b":                "master",
		"redis+sentinel://a,,b/m":             "host",
		"redis+sentinel://a/m/x":              "database",
		"redis+sentinel://a/m?db=1":           "query",
		"redis+cluster://":                    "host",
		"redis+cluster://a,,b":                "host",
		"redis+cluster://a/1":                 "database",
		"redis+cluster://a?db=0":              "query",
		"redis://" + strings.Repeat("h", 254): "host",
		strings.Repeat("x", 9000):             "text",
	}
	for raw, part := range cases {
		_, err := ParseURL(raw)
		var e *URLError
		if !errors.As(err, &e) || e.Part != part || e.Hint == "" {
			t.Errorf("ParseURL(%.80q): %v (hint %q), want one about the %s", raw, err, hintOf(err), part)
		}
		if text := fmt.Sprint(err, hintOf(err)); strings.Contains(text, "hunter2") || strings.Contains(text, "ter2") {
			t.Errorf("ParseURL(%.80q) shows a piece of the password: %s", raw, text)
		}
	}
}

func TestTargetNeverPrintsAPassword(t *testing.T) {
	for _, raw := range []string{"redis://u:hunter2@h", "unix://u:hunter2@/s", "redis+sentinel://u:hunter2@a/m?sentinel_password=hunter2", "redis+cluster://u:hunter2@a"} {
		target, err := ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if out := fmt.Sprintf(verb, target); strings.Contains(out, "hunter2") || strings.Contains(out, "68756e74657232") {
				t.Errorf("%s prints %s", verb, out)
			}
		}
	}
}

// FuzzParseURL: nothing panics, an accepted URL means again the same when it is
// written anew, and whatever stands before an @ is never seen in an error.
func FuzzParseURL(f *testing.F) {
	f.Add("redis://u", "h:6379/0")
	f.Add("rediss+sentinel://", "a,b:1,[::1]/m/3?sentinel_password=x")
	f.Add("redis+cluster://u", "a,b:1")
	f.Add("unix://u", "/run/x.sock?db=1")
	f.Add("redis://h/?", "#%zz")
	f.Add("", "x://")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2-Xq"
		if strings.Contains(before+after, "unter2") {
			return // the input has the secret itself
		}
		target, err := ParseURL(before + ":" + secret + "@" + after)
		if text := fmt.Sprint(err, hintOf(err), target); strings.Contains(text, secret) {
			t.Fatalf("the password is in %q", text)
		}
		if _, err := ParseURL(before + after); err != nil && hintOf(err) == "" {
			t.Fatalf("no hint: %v", err)
		}
		if err != nil {
			return
		}
		again, err := ParseURL(target.String())
		again.User, again.Password = target.User, target.Password
		again.SentinelUser, again.SentinelPassword = target.SentinelUser, target.SentinelPassword
		if err == nil && !reflect.DeepEqual(again, target) {
			t.Fatalf("%s is read as %s", fields(target), fields(again))
		}
	})
}

func hintOf(err error) string {
	var e *URLError
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// fields prints what Target's own methods hide.
func fields(t Target) string {
	type plain Target
	return fmt.Sprintf("%+v", plain(t))
}
