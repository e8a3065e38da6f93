package locker_test

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

func open(t *testing.T, k locker.Kind, addr string, o locker.Options) locker.Client {
	t.Helper()
	c, err := k.Open(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Every locker is a lock, so that what is raced does the same.
func TestLockersExclude(t *testing.T) {
	for _, k := range locker.All() {
		if !k.Waits { // there is nothing to try in one that refuses
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			s := drivertest.StartServer(t)
			var all sync.WaitGroup
			var holders, cycles atomic.Int64
			for range 3 {
				c := open(t, k, s.Addr(), locker.Options{})
				for range 2 {
					take := c.Of("job")
					all.Go(func() {
						for range 5 {
							h, err := take(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							if holders.Add(1) != 1 {
								t.Error("two have it")
							}
							cycles.Add(1)
							holders.Add(-1)
							if err := h.Release(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			all.Wait()
			if cycles.Load() != 30 {
				t.Errorf("it was had %d times", cycles.Load())
			}
		})
	}
}

// The floor has all kinds, and who gives up waiting is not handed anything.
func TestScriptsLeaveTheQueue(t *testing.T) {
	for _, k := range locker.All() {
		if k.Family != locker.Scripts {
			continue
		}
		for _, o := range []locker.Options{{}, {Mode: locker.Writer}, {Mode: locker.Permit, Permits: 1}} {
			s := drivertest.StartServer(t)
			holder, err := open(t, k, s.Addr(), o).Of("job")(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := open(t, k, s.Addr(), o)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if _, err := c.Of("job")(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while it was held: %v", err)
			}
			cancel()
			if keys, _ := s.MustDo("KEYS", "zamok:queue:*").([]any); len(keys) > 0 {
				t.Errorf("%+v: somebody stands in %v", o, keys)
			}
			if err := holder.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// raced says that the race detector watches: it drops what is pooled at random.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// What a cycle of zamok allocates on a real server, all in all: a change that makes it
// more is to be seen. What the same scripts take, called directly on the client library,
// is told beside it; the root's TestCycleAllocatesLittle has the engine's alone.
func TestAllocationsOfACycle(t *testing.T) {
	if raced() {
		t.Skip("the race detector allocates, and drops what is pooled")
	}
	for name, most := range map[string]float64{
		"scripts/goredis": 54, "zamok/goredis": 62,
		"scripts/rueidis": 11, "zamok/rueidis": 30,
	} {
		kinds, err := locker.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		take := open(t, kinds[0], drivertest.StartServer(t).Addr(), locker.Options{}).Of("job")
		cycle := func() {
			h, err := take(t.Context())
			if err == nil {
				err = h.Release(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 10 { // connections are made, what is pooled is there
			cycle()
		}
		// A client says of itself once a second at most, which another look lacks.
		least := testing.AllocsPerRun(500, cycle)
		for range 4 {
			least = min(least, testing.AllocsPerRun(500, cycle))
		}
		if t.Logf("%s: %v allocations a cycle", name, least); least > most {
			t.Errorf("%s: %v allocations a cycle, at most %v are known", name, least, most)
		} else if least < most {
			t.Logf("that is less than %v: write it down here", most)
		}
	}
}
