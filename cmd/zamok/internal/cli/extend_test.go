package cli

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// A connection that breaks right after the hand-over must not cost the place in
// line: the lease that was passed on is still ours.
func TestExtendRidesOutABrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zamoktest.New(t, nil)
		lease, err := server.Client().Mutex("job", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var cuts atomic.Int32
		server.Intercept(func(c driver.Call) memory.Fault {
			if c.Script.Name() == "renew" && cuts.Add(1) <= 3 {
				return memory.Fault{Err: errors.New("EOF")}
			}
			return memory.Fault{}
		})
		if err := extend(t.Context(), lease, time.Minute); err != nil || cuts.Load() != 4 {
			t.Errorf("after %d calls: %v", cuts.Load(), err)
		}
		if left, _ := server.TTL("lock:job"); left != time.Minute {
			t.Errorf("%v left", left)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
