package broken

import (
	"context"
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/lab/fault/validate"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(len(Scenes()))); err != nil { // most of a scene is waiting
			panic(err)
		}
	}
	redis.SetLogger(silent{}) // it prints every connection that breaks
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestCheckersHaveTeeth: each flaw is seen by the checks that are meant for it, and the
// lock without it gives these no reason to complain.
func TestCheckersHaveTeeth(t *testing.T) {
	for _, s := range Scenes() {
		t.Run(string(s.Flaw), func(t *testing.T) {
			t.Parallel()
			c := s.Catch(t.Context(), t)
			if !c.Seen {
				t.Errorf("not caught in %d holds, %d operations; instead: %+v", c.Report.Holds, c.Report.Operations, c.Report.Violations[:min(3, len(c.Report.Violations))])
			}
			t.Logf("caught within %v", c.Within)
			for _, v := range s.Acquit(t.Context(), t, c.Within) {
				t.Errorf("without the flaw: %s: %s: %s: %+v", v.Property, v.Name, v.Text, v.Events)
			}
		})
	}
}

// Every property is violated by some lock, and is what tells of it.
func TestEveryPropertyIsTried(t *testing.T) {
	for _, p := range validate.Properties {
		if !slices.ContainsFunc(Scenes(), func(s Scene) bool { return slices.Contains(s.Want, p) }) {
			t.Errorf("no lock violates %q", p)
		}
	}
}
