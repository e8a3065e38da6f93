package zamoktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// The server is gone: that nobody knows is not that another holds, so the job
// must not keep silent about it as it does about a rival.
func TestReportSaysThatTheServerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, &zamok.Config{GiveUp: 3 * time.Second})
		job := &report{locks: server.Client(), book: &book{}}
		server.Down(nil)
		begin := time.Now()
		if err := job.Make(t.Context()); !errors.Is(err, zamok.ErrUnavailable) || job.book.len() > 0 {
			t.Errorf("%d pages, %v; want none and ErrUnavailable", job.book.len(), err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("it took %v to say so", took)
		}
		server.Up()
		if err := job.Make(t.Context()); err != nil || job.book.len() != pages {
			t.Errorf("up again: %d pages, %v", job.book.len(), err)
		}
	})
}

// It is gone for a moment, and so is every connection. The keys are still there
// afterwards, and so is the lease.
func TestReportSurvivesAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		done := start(t.Context(), job.Make)
		fence := server.AwaitHeld("report")
		time.Sleep(10 * time.Second)
		server.Down(nil)
		time.Sleep(5 * time.Second)
		server.Up()
		time.Sleep(time.Minute)
		if got := server.Fence("report"); got != fence {
			t.Errorf("held with fence %d, want %d as before", got, fence)
		}
		if err := <-done; err != nil || job.book.len() != pages {
			t.Errorf("%d pages, %v", job.book.len(), err)
		}
	})
}
