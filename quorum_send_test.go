package zamok_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
)

// counting counts the calls to a member, and in how many pieces they went.
type counting struct {
	driver.Driver
	calls, pieces *atomic.Int64
}

func (c counting) Eval(ctx context.Context, call driver.Call) (any, error) {
	c.calls.Add(1)
	c.pieces.Add(1)
	return c.Driver.Eval(ctx, call)
}

func (c counting) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	c.calls.Add(int64(len(calls)))
	c.pieces.Add(1)
	return c.Driver.EvalAll(ctx, calls)
}

// What many ask of a member goes together.
func TestQuorumSendsTogether(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		var calls, pieces atomic.Int64
		c := all.clientOver(t, func(d driver.Driver) driver.Driver { return counting{d, &calls, &pieces} })
		var wg sync.WaitGroup
		for i := range 64 {
			m := c.Mutex(fmt.Sprint("j", i), nil)
			wg.Go(func() {
				for range 20 {
					release(t, lock(t, m))
				}
			})
		}
		wg.Wait()
		pass(time.Second)
		sent, went := calls.Load(), pieces.Load()
		t.Logf("%d calls went in %d pieces", sent, went)
		if want := int64(64 * 20 * 2 * 3); sent < want || sent > want*5/4 || went > sent/8 {
			t.Errorf("%d calls, want %d and few more, in %d pieces", sent, want, went)
		}
	})
}

// Who comes while another's request is under way waits for that for a moment only, also
// when it is never answered.
func TestQuorumWaitsForNoOthersAnswer(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		c := all.client(t)
		release(t, lock(t, c.Mutex("job", nil)))
		pass(time.Second)
		for _, s := range all {
			once(s, "vote", memory.Fault{DropRequest: true})
		}
		got := goLock(t, c.Mutex("job", nil))
		pass(500 * time.Microsecond)
		for i := range 10 {
			start := time.Now()
			l := lock(t, c.Mutex(fmt.Sprint("j", i), nil))
			locked := time.Since(start)
			release(t, l)
			if released := time.Since(start) - locked; locked > 4*time.Millisecond || released > 4*time.Millisecond {
				t.Errorf("members answer in 2 ms; lock took %v, release %v", locked, released)
			}
		}
		release(t, <-got)
	})
}
