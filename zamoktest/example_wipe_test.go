package zamoktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// The server restarts without its data: the lock is gone, and so is the counter
// of fences. The job stops, is told why, and whoever comes next has a larger
// fence all the same.
func TestReportStopsWhenTheServerLosesItsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		fence := server.AwaitHeld("report")
		time.Sleep(30 * time.Second)
		server.Wipe()
		server.Restart()
		err := <-done
		var lost *zamok.LostError
		if !errors.As(err, &lost) || lost.Reason != zamok.LostData || lost.Fence != fence {
			t.Errorf("got %v, want LostData with the fence %d", err, fence)
		}
		if n := job.book.len(); n > 35 {
			t.Errorf("%d pages: it went on for more than 5s", n)
		}
		server.Hold("report")
		if next := server.Fence("report"); next <= fence {
			t.Errorf("fence %d after %d", next, fence)
		}
	})
}
