package zamok

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// obliging is a server that answers at once, to everything.
type obliging struct {
	driver.Driver
	run string
}

func (o obliging) Do(context.Context, time.Duration, ...string) (any, error) {
	return "role:master\r\nrun_id:" + o.run + "\r\n", nil
}

func (o obliging) Eval(context.Context, driver.Call) (any, error) {
	return []any{"released", "0", int64(0), int64(0), int64(0), int64(0), ""}, nil
}

func (o obliging) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	for i, c := range calls {
		results[i].Reply, results[i].Err = o.Eval(ctx, c)
	}
	return results
}

// Members that look whether they are servers of their own look at each other, and others
// are owed something meanwhile, which they have done behind: neither waits for the other.
// Mutexes stand still in virtual time, so this is in real time.
func TestQuorumMembersLookAndOweAtATime(t *testing.T) {
	var nodes []Node
	for i := range 3 {
		nodes = append(nodes, Node{Name: fmt.Sprint("m", i), Driver: obliging{run: fmt.Sprint("run", i)}})
	}
	c, err := NewQuorum(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"lock:job", "queue:job"}
	var work sync.WaitGroup
	for _, m := range c.quorum.members {
		work.Go(func() {
			for range 5000 {
				m.mu.Lock()
				m.run = "" // as after a failure
				m.mu.Unlock()
				if err := m.look(t.Context(), time.Second); err != nil {
					t.Error(err)
					return
				}
			}
		})
		work.Go(func() {
			for range 5000 {
				m.owe(leaveCall(keys, "token", "", callLimit), false)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("they wait for each other")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
