package drivertest

import (
	"testing"
	"time"
)

// patience is how long a test waits for what must come. It is long, because
// nothing waits for all of it but a test that fails.
const patience = 30 * time.Second

// eventually polls a condition that nothing announces.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	within(t, patience, what, cond)
}

func within(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	limit := time.After(d)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("still waiting for %s after %v", what, d)
		}
	}
}
