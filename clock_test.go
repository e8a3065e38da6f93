package zamok

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
)

// stepWall sets the wall clock as a client sees it: ahead, or back. It does so by what
// the client remembers of it, since nobody can set that of the process.
func stepWall(c *Client, by time.Duration) { c.clock.skew.Add(-int64(by)) }

// The wall clock of the holder's host is stepped while it holds and when it is cut off,
// and that of a waiter while it waits: the lease lasts as long as without that, and not
// longer, and the next one comes after it.
func TestAWallClockThatIsSteppedDecidesNothing(t *testing.T) {
	for _, by := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { steppedWhileHeld(t, by) }) })
	}
}

func steppedWhileHeld(t *testing.T, by time.Duration) {
	s := memory.New()
	var cut atomic.Bool
	s.Intercept(func(c driver.Call) memory.Fault {
		return memory.Fault{DropRequest: cut.Load() && c.Script.Name() == "renew"}
	})
	var clients [2]*Client
	for i := range clients {
		c, err := New(s, &Config{TTL: 3 * time.Second, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[i] = c
	}
	holder, waiter := clients[0], clients[1]

	older, err := holder.Mutex("job", nil).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stepWall(holder, by)
	got := make(chan *Lease, 1)
	go func() {
		l, err := waiter.Mutex("job", nil).Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	synctest.Wait()
	stepWall(waiter, by)
	<-time.After(10 * time.Second) // several renewals
	if left := time.Until(older.Deadline()); older.Err() != nil || left <= 0 || left > 3*time.Second || len(got) > 0 {
		t.Errorf("held for %v more, somebody else has it: %v; %v", left, len(got) > 0, older.Err())
	}
	cut.Store(true)
	stepWall(holder, by)
	newer := <-got
	if newer == nil {
		return
	}
	if older.Err() == nil {
		t.Error("two hold the lock")
	}
	if newer.Fence() <= older.Fence() {
		t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
	}
	if err := newer.Release(t.Context()); err != nil || s.Type("lock:job") != "none" {
		t.Errorf("Release: %v; the key is a %s", err, s.Type("lock:job"))
	}
	for _, c := range clients {
		// Who is interrupted between the looks at both of the system's clocks takes that for sleep.
		if c.clock.now(); c.clock.skew.Load() != 0 || time.Duration(c.clock.slept.Load()) > 500*time.Millisecond {
			t.Errorf("the step was not seen, or taken for sleep of %v", time.Duration(c.clock.slept.Load()))
		}
	}
}
