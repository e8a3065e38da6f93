package traffic

import (
	"strings"
	"testing"
)

func TestBadPlans(t *testing.T) {
	const whole = `{"Proc": "w", "Dir": "d", "Clients": 1, "Routines": 1, "Names": 1, "TTL": 1, "Epoch": 1, "Mix": {"lock": 1}}`
	if _, err := ReadPlan(strings.NewReader(whole)); err != nil {
		t.Errorf("%s: %v", whole, err)
	}
	for _, without := range []string{`"Proc": "w"`, `"Dir": "d"`, `"Clients": 1`, `"Routines": 1`, `"Names": 1`, `"TTL": 1`, `"Epoch": 1`, `{"lock": 1}`} {
		bad := strings.Replace(whole, without, `"Seed": 1`, 1)
		if without == `{"lock": 1}` {
			bad = strings.Replace(whole, without, `{}`, 1)
		}
		if _, err := ReadPlan(strings.NewReader(bad)); err == nil {
			t.Errorf("no error about %s", bad)
		}
	}
	if _, err := ReadPlan(strings.NewReader(strings.Replace(whole, "Proc", "Prok", 1))); err == nil {
		t.Error("no error about an unknown field")
	}
}

func TestMainWithoutAPlan(t *testing.T) {
	for _, in := range []string{"", "{}\n", "no plan\n"} {
		var out, errout strings.Builder
		if code := Main(strings.NewReader(in), &out, &errout); code != 1 || errout.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: code %d, %q, %q", in, code, out.String(), errout.String())
		}
	}
}
