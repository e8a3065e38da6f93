package zamoktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/zamoktest"
)

// Another process holds the lock: who does not wait must do nothing, and say so
// as its caller expects it.
func TestReportIsLeftToARival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		release := server.Hold("report")
		if err := job.Make(t.Context()); err != nil || job.book.len() > 0 {
			t.Errorf("%d pages, %v; want none, and no error", job.book.len(), err)
		}
		release()
		if err := job.Make(t.Context()); err != nil || job.book.len() != pages {
			t.Errorf("after the rival: %d pages, %v", job.book.len(), err)
		}
	})
}

// Who waits gets the lock at the moment when the rival releases it, and with a
// larger fence.
func TestReportWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		release := server.Hold("report")
		rival := server.Fence("report")
		done := start(t.Context(), job.MakeInTurn)
		server.AwaitWaiters("report", 1)
		time.Sleep(time.Hour) // the rival's lease is renewed as long as it holds
		if job.book.len() > 0 {
			t.Fatal("the job did not wait")
		}
		release()
		if fence := server.AwaitHeld("report"); fence <= rival {
			t.Errorf("fence %d after %d", fence, rival)
		}
		if err := <-done; err != nil || job.book.len() != pages {
			t.Errorf("%d pages, %v", job.book.len(), err)
		}
	})
}

// Two waiters are served in the order in which they came.
func TestReportsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		first := &report{locks: server.Client(), book: &book{}}
		second := &report{locks: server.Client(), book: first.book}
		release := server.Hold("report")
		firstDone := start(t.Context(), first.MakeInTurn)
		server.AwaitWaiters("report", 1)
		secondDone := start(t.Context(), second.MakeInTurn)
		server.AwaitWaiters("report", 2)
		release()
		if err := <-firstDone; err != nil {
			t.Error(err)
		}
		if n := first.book.len(); n != pages {
			t.Errorf("%d pages when the first was done, want its own %d", n, pages)
		}
		if err := <-secondDone; err != nil || first.book.stale > 0 {
			t.Errorf("%v, %d pages came too late", err, first.book.stale)
		}
	})
}
