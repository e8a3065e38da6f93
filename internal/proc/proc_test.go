package proc

import (
	"reflect"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	in := Record{Service: "mailer", Host: "web-3", PID: 4711, Reasons: map[string]string{"z1/web-3/4711/x/1": "a \"reason\"\n\xff"}}
	out, ok := Parse(in.Text())
	in.Reasons["z1/web-3/4711/x/1"] = "a \"reason\"\n\ufffd" // JSON has no other bytes
	if !ok || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v became %+v", in, out)
	}
	for _, bad := range []string{"", "x", "[]", `{"pid":"x"}`} {
		if r, ok := Parse(bad); ok {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}
