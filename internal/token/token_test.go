package token

import "testing"

func TestParseValue(t *testing.T) {
	cases := []struct {
		value string
		want  Holder
		fence int64
	}{
		{"", Holder{}, 0},
		{"z1/web-3/4711/Ab_-9/7:1795900000000000", Holder{Host: "web-3", PID: 4711, Client: "web-3/4711/Ab_-9", Token: "z1/web-3/4711/Ab_-9/7"}, 1795900000000000},
		{"z1-rest/web-3/4711/Ab/7:12", Holder{Host: "web-3", PID: 4711, Client: "web-3/4711/Ab", Token: "z1-rest/web-3/4711/Ab/7", Resting: true}, 12},
		{"z1/web-3/4711/Ab/7", Holder{Token: "z1/web-3/4711/Ab/7", Foreign: true}, 0},                             // no fence
		{"z1/web-3/4711/Ab/7:0", Holder{Token: "z1/web-3/4711/Ab/7:0", Foreign: true}, 0},                         // fences begin at 1
		{"z1/web-3/4711/Ab/7:1:2", Holder{Token: "z1/web-3/4711/Ab/7:1:2", Foreign: true}, 0},                     // a colon within the token
		{"z2/web-3/4711/Ab/7:5", Holder{Token: "z2/web-3/4711/Ab/7:5", Foreign: true}, 0},                         // another version
		{"7c9e6679-7425-40de", Holder{Token: "7c9e6679-7425-40de", Foreign: true}, 0},                             // another library
		{"z1/web-3/-1/Ab/7:5", Holder{Token: "z1/web-3/-1/Ab/7:5", Foreign: true}, 0},                             // no pid
		{"z1//1/Ab/7:5", Holder{Token: "z1//1/Ab/7:5", Foreign: true}, 0},                                         // no host
		{"z1/a/1/Ab/7/8:5", Holder{Token: "z1/a/1/Ab/7/8:5", Foreign: true}, 0},                                   // too many parts
		{"z1/a/1/A b/7:5", Holder{Token: "z1/a/1/A b/7:5", Foreign: true}, 0},                                     // a space
		{"z1/a/1/A|b/7:5", Holder{Token: "z1/a/1/A|b/7:5", Foreign: true}, 0},                                     // would break a queue's entry
		{"z1/a/1/Ab/7:99999999999999999999", Holder{Token: "z1/a/1/Ab/7:99999999999999999999", Foreign: true}, 0}, // no int64
	}
	for _, c := range cases {
		got, fence := ParseValue(c.value)
		if got != c.want || fence != c.fence {
			t.Errorf("ParseValue(%q) = %+v, %d; want %+v, %d", c.value, got, fence, c.want, c.fence)
		}
	}
}

func TestParseMember(t *testing.T) {
	m, ok := ParseMember("w|z1/a/1/r/2|15000|app:zamok:inbox:a/1/r|x")
	if want := (Member{Mode: "w", Token: "z1/a/1/r/2", TTL: 15000, Inbox: "app:zamok:inbox:a/1/r|x"}); !ok || m != want {
		t.Errorf("got %+v, %v; want %+v", m, ok, want)
	}
	for _, bad := range []string{"", "w|t", "w|t|x|i", "w|t|-1|i"} {
		if m, ok := ParseMember(bad); ok {
			t.Errorf("ParseMember(%q) = %+v, want none", bad, m)
		}
	}
}

// FuzzParseValue: a value of ours is its token and its fence again, and nothing
// panics on what others write.
func FuzzParseValue(f *testing.F) {
	f.Add("z1/web-3/4711/Ab/7:1795900000000000")
	f.Add("z1-rest/h/1/r/1:9")
	f.Add("::::")
	f.Fuzz(func(t *testing.T, v string) {
		h, fence := ParseValue(v)
		switch {
		case v == "" && h != Holder{}:
			t.Errorf("the empty value has a holder: %+v", h)
		case v == "" || h.Foreign:
		case fence <= 0 || len(h.Token) >= len(v) || v[:len(h.Token)+1] != h.Token+":":
			t.Errorf("ParseValue(%q) = %+v, %d", v, h, fence)
		}
	})
}
