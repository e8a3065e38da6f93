package proc

import (
	"reflect"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	in := Record{
		Service: "mailer", Host: "web-3", PID: 4711, Holding: 2, Waiting: 1,
		Held: []Lease{
			{Name: "a\xffb", Token: "7", TTLMS: 15000, Reason: "a \"reason\"\n"},
			{Name: "b", Key: "old:{b}", Token: "z1/web-4/1/y/1", Given: true},
		},
		Waits: []Wait{{Name: "c <&> d", Token: "8", Under: []string{"z1/web-3/4711/x/7"}}},
	}
	out, ok := Parse(in.Text())
	if !ok || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v became %+v", in, out)
	}
	event := Event{Kind: Expired, Name: "a\xff", Key: "lock:a\xff", Fence: 1 << 52}
	if got, ok := ParseEvent(event.Text()); !ok || got != event {
		t.Errorf("%+v became %+v", event, got)
	}
	for _, bad := range []string{"", "x", "[]", `{"pid":"x"}`} {
		if r, ok := Parse(bad); ok {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}

func TestShort(t *testing.T) {
	const start = "z1/web-3/4711/x/"
	for token, short := range map[string]string{
		"z1/web-3/4711/x/7a":  "7a",
		"z1/web-3/4711/xy/7a": "z1/web-3/4711/xy/7a", // another client
		"z1/web-3/4711/x/":    "z1/web-3/4711/x/",
	} {
		if got := Short(start, token); got != short || Whole(start, got) != token {
			t.Errorf("Short(%q) = %q, and back %q", token, got, Whole(start, got))
		}
	}
}
