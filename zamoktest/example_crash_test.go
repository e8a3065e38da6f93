package zamoktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/zamoktest"
)

// A rival dies with the lock, which costs those who wait its TTL and no more.
// Detach leaves a lock as kill -9 does: taken, and renewed by nobody.
func TestReportComesAfterADeadRival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		job := &report{locks: server.Client(), book: &book{}}
		rival, err := server.Client().Mutex("report", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rival.Detach(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := job.MakeInTurn(t.Context()); err != nil || job.book.len() != pages {
			t.Errorf("%d pages, %v", job.book.len(), err)
		}
		if waited := time.Since(begin) - pages*time.Second; waited < 14*time.Second || waited > 16*time.Second {
			t.Errorf("it waited %v, want the TTL of 15s", waited)
		}
	})
}
