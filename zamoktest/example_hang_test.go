package zamoktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// The server does not answer for a while that is shorter than the lease: the job
// must not even notice.
func TestReportRidesOutAHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		server.AwaitHeld("report")
		time.Sleep(10 * time.Second)
		server.Hang()
		time.Sleep(5 * time.Second)
		server.Unhang()
		if err := <-done; err != nil || job.book.len() != pages {
			t.Errorf("%d pages, %v", job.book.len(), err)
		}
	})
}

// It does not answer for longer: the job must have stopped while the server
// still keeps the lock, so before a rival can have it.
func TestReportStopsBeforeItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		server.AwaitHeld("report")
		time.Sleep(10 * time.Second)
		server.Hang()
		err := <-done
		var lost *zamok.LostError
		if !errors.As(err, &lost) || lost.Reason != zamok.LostExpired {
			t.Errorf("got %v, want LostExpired", err)
		}
		if !server.Held("report") {
			t.Error("the lock was free before the job had stopped")
		}
	})
}
