package itest

import (
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/inspect/doctor"
)

// Who looks at a cluster sees the locks of all shards, and that their waiters live;
// the doctor listens as a waiter does.
func TestClusterIsSeen(t *testing.T) {
	t.Parallel()
	p := placeOf(drivertest.StartCluster(t, 3, 0))
	for turn, lib := range libraries {
		d := p.open(t, lib)
		look, err := inspect.New(d, "")
		if err != nil {
			t.Fatal(err)
		}
		holder, waiter := p.client(t, turn, nil), p.client(t, turn+1, nil)
		for _, name := range []string{"a", "b", "c"} {
			held := lock(t, holder.Mutex(name, nil))
			next := goLock(t.Context(), waiter.Mutex(name, nil))
			within(t, patience, "the waiter of "+name+" is seen alive", func() bool {
				l, err := look.Show(t.Context(), name)
				return err == nil && len(l.Waiters) == 1 && l.Waiters[0].Alive
			})
			release(t, held)
			release(t, receive(t, next, "lease").lease)
		}
		findings, err := doctor.Examine(t.Context(), d, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			if f.Check == "pubsub" && f.Severity != doctor.OK || f.Check == "rights" && f.Severity != doctor.OK && f.Severity != doctor.Note {
				t.Errorf("%s: %+v", lib.name, f)
			}
		}
	}
}
