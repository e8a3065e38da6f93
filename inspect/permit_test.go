package inspect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// Permits of semaphores are no locks: who holds one or waits for one is told as a
// process, and no key of a sorted set is taken for an unreadable lock.
func TestPermitsAreNoLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "app:")
		c := process(t, server, "app:")
		hold(t, c, "lock", nil)
		permit, err := c.Semaphore("api", 1, nil).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := process(t, server, "app:").Semaphore("api", 1, nil).Acquire(ctx)
			done <- err
		}()
		time.Sleep(5 * time.Second)
		v := look(t, in)
		if got := names(all(t, v, "")); got != "lock" || v.Unnamed != 0 || len(v.Processes) != 2 {
			t.Errorf("locks %q, %d unnamed, %d processes", got, v.Unnamed, len(v.Processes))
		}
		if r := check(t, in, &inspect.CheckConfig{}); len(r.Problems) != 0 || r.Held != 1 {
			t.Errorf("%+v", r)
		}
		cancel()
		<-done
		if err := permit.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
