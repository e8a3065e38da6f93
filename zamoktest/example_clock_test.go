package zamoktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// The server's clock is set forward, so that the lock expires under its holder:
// the job stops within a third of the TTL, as after any loss.
func TestReportStopsWhenTheServersClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		server.AwaitHeld("report")
		time.Sleep(30 * time.Second)
		server.Step(time.Hour)
		if server.Held("report") {
			t.Fatal("the lock did not expire")
		}
		if err := <-done; !errors.Is(err, zamok.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if n := job.book.len(); n > 35 {
			t.Errorf("%d pages: it went on for more than 5s", n)
		}
	})
}
