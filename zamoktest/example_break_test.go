package zamoktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// An operator breaks the lock. The job is asked and not robbed: it stops, can
// tell why, and nobody else has the lock before it has stopped.
func TestReportStopsWhenAnOperatorAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		next := &report{locks: server.Client(), book: job.book}
		done := start(t.Context(), job.Make)
		fence := server.AwaitHeld("report")
		nextDone := start(t.Context(), next.MakeInTurn)
		server.AwaitWaiters("report", 1)
		time.Sleep(30 * time.Second)
		server.BreakLock("report", "needed for #12")
		if server.Fence("report") != fence {
			t.Error("the job lost the lock before it stopped")
		}
		err := <-done
		var lost *zamok.LostError
		if !errors.As(err, &lost) || lost.Reason != zamok.LostBroken || lost.Why != "needed for #12" {
			t.Errorf("got %v, want LostBroken and why", err)
		}
		if n := job.book.len(); n > 35 {
			t.Errorf("%d pages: it went on for more than 5s", n)
		}
		if err := <-nextDone; err != nil || job.book.stale > 0 {
			t.Errorf("the next one: %v, %d pages came too late", err, job.book.stale)
		}
	})
}
