package zamoktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// Somebody deletes the lock's key: the job must stop when its context ends, within
// a third of the TTL of 15 s, and must not report success.
func TestReportStopsWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		server.AwaitHeld("report")
		time.Sleep(30 * time.Second)
		server.Lose("report")
		if err := <-done; !errors.Is(err, zamok.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if n := job.book.len(); n > 35 {
			t.Errorf("%d pages: it went on for more than 5s", n)
		}
	})
}

// The next holder comes before the first one has noticed. That is what fences
// are for: the book refuses the first one's pages.
func TestLatePagesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		server.AwaitHeld("report")
		time.Sleep(10500 * time.Millisecond) // within a page
		server.Lose("report")
		server.Hold("report")
		if err := job.book.add(server.Fence("report")); err != nil {
			t.Errorf("the newer holder was refused: %v", err)
		}
		if err := <-done; !errors.Is(err, errStale) {
			t.Errorf("got %v, want that the book refuses the older holder", err)
		}
		if job.book.len() != 11 || job.book.stale != 1 {
			t.Errorf("%d pages, %d refused; want 10 and the newer holder's, 1 refused", job.book.len(), job.book.stale)
		}
	})
}
