package inspect_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// Scan finds what no process names, and nothing that only looks like a lock.
func TestScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		const prefix = "a*[b]?\\:" // must match only itself
		in := inspector(t, server, prefix)
		if l := all(t, scan(t, in), ""); len(l) != 0 {
			t.Errorf("an empty server: %v", l)
		}
		for i := range 600 { // more than a batch
			server.Set(fmt.Sprintf("%slock:n-%03d", prefix, i), "foreign", time.Minute)
		}
		server.Set("axxb:lock:other", "x", 0)
		server.Set(prefix+"other", "x", 0)
		server.SetList(prefix + "lock:n-list")
		locks := all(t, scan(t, in), "")
		if len(locks) != 601 {
			t.Fatalf("%d locks; want 601", len(locks))
		}
		for i, l := range locks[:600] {
			if l.Name != fmt.Sprintf("n-%03d", i) || !l.Held || !l.First().Holder.Foreign || l.Err != nil {
				t.Fatalf("lock %d: %+v", i, l)
			}
		}
		if last := locks[600]; last.Name != "n-list" || last.Err == nil || last.Held {
			t.Errorf("the list: %+v, want an error", last)
		}
		if some := all(t, scan(t, in), "n-00[0-4]"); len(some) != 5 {
			t.Errorf("%d locks for a pattern; want 5", len(some))
		}
		if l := all(t, look(t, in), ""); len(l) != 0 {
			t.Errorf("Look found %d; nobody names any", len(l))
		}
	})
}

// A lock that a process names and the walk finds is told once, with the name that
// the process gives it.
func TestScanTellsEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		hold(t, c, "a", nil)
		hold(t, c, "b", &zamok.MutexConfig{Key: "lock:old"})
		if err := c.Mutex("rest", &zamok.MutexConfig{MinHold: time.Hour}).Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := names(all(t, look(t, in), "")); got != "a b rest" {
			t.Errorf("Look: %q", got)
		}
		locks := all(t, scan(t, in), "")
		if got := names(locks); got != "a b rest" {
			t.Errorf("Scan: %q", got)
		}
		for _, l := range locks {
			if l.Name == "b" && (l.Key != "lock:old" || l.First().Holder.Client != c.ID()) || l.First().Service == "" {
				t.Errorf("%+v", l)
			}
		}
	})
}

func TestScanEndsWithCtx(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inspector(t, memory.New(), "").Scan(ctx); err == nil {
		t.Error("no error under a ctx that has ended")
	}
}
