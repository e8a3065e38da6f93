package zamok

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/zamok-go/zamok/driver"
)

// willing is a server that grants everything.
type willing struct{ driver.Driver }

func (willing) Eval(_ context.Context, call driver.Call) (any, error) {
	status := "released"
	if call.Script.Name() == "acquire" {
		status = "granted"
	}
	return []any{status, strconv.Itoa(1 << 50), int64(15000), int64(1 << 50), int64(0), int64(0), "", "0"}, nil
}

func (willing) Clustered() bool { return false }

func (willing) EvalAll(_ context.Context, calls []driver.Call) []driver.Result {
	return make([]driver.Result, len(calls))
}

// TestNothingIsLeftOfALine that nobody is in.
func TestNothingIsLeftOfALine(t *testing.T) {
	c, err := New(willing{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all sync.WaitGroup
	for i := range 1000 {
		m := c.Mutex(strconv.Itoa(i%100), nil)
		all.Go(func() {
			for range 5 {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				_ = l.Release(t.Context())
			}
		})
	}
	all.Wait()
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	if n := len(c.keeper.lines); n > 0 {
		t.Errorf("%d lines are left", n)
	}
}
