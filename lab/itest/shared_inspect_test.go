package itest

import (
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// What several have at a time is told, listed and broken one by one on a real server,
// through either library.
func TestInspectWhatSeveralHave(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), &zamok.Config{TTL: longTTL, Name: "several"})
		in := lookOn(t, lib.new(t, s.URL()))
		sem, rw := c.Semaphore("api", 3, nil), c.RWMutex("config", nil)
		for what, k := range map[string]struct {
			take func() (*zamok.Lease, error)
			show func() (inspect.Lock, error)
			want inspect.Kind
		}{
			"permits": {
				func() (*zamok.Lease, error) { return sem.Acquire(t.Context()) },
				func() (inspect.Lock, error) { return in.ShowSemaphore(t.Context(), "api") }, inspect.KindSemaphore,
			},
			"readers": {
				func() (*zamok.Lease, error) { return rw.RLock(t.Context()) },
				func() (inspect.Lock, error) { return in.Show(t.Context(), "config") }, inspect.KindReadLock,
			},
		} {
			var leases []*zamok.Lease
			for range 3 {
				l, err := k.take()
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, l)
			}
			var shown inspect.Lock
			within(t, patience, what+" are told", func() bool {
				var err error
				if shown, err = k.show(); err != nil {
					t.Fatal(err)
				}
				return shown.Holding == 3 && len(shown.Holders) == 3 && shown.Holders[2].Fence > 0 && shown.Holders[2].Service == "several"
			})
			first := shown.First()
			if shown.Kind != k.want || first.Token != leases[0].Token() || first.Fence != leases[0].Fence() || first.Since <= 0 ||
				first.Left > longTTL || first.Left < longTTL-time.Minute || shown.Left < first.Left {
				t.Errorf("%s: %+v", what, shown)
			}
			for n, now := range []bool{false, true} {
				cfg := &inspect.BreakConfig{Token: leases[n].Token(), By: "ann", Why: "a trial", Now: now}
				b, err := in.Break(t.Context(), shown, cfg)
				if err != nil || b.Asked == now || b.AuditErr != nil {
					t.Fatalf("%s, now %v: %+v, %v", what, now, b, err)
				}
				if loss := lossOf(t, leases[n]); loss.Reason != zamok.LostBroken || loss.Operator != "ann" || loss.Why != "a trial" {
					t.Errorf("%s, now %v: %+v", what, now, loss)
				}
				_ = leases[n].Release(t.Context())
			}
			within(t, patience, what+" end", func() bool {
				l, err := k.show()
				return err == nil && l.Holding == 1 && l.First().Token == leases[2].Token()
			})
		}
		var titles []string
		for _, l := range listedBy(t, viewOf(t, in), "") {
			titles = append(titles, l.Title())
		}
		if len(titles) != 2 || titles[0] != "config" || titles[1] != "semaphore:api" {
			t.Errorf("listed: %q", titles)
		}
	})
}

func viewOf(t *testing.T, in *inspect.Inspector) *inspect.View {
	t.Helper()
	v, err := in.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}
