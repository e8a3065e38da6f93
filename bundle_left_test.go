package zamok_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/zamoktest"
)

// repeating is a library that sends a pipeline again whose replies were lost, as go-redis
// does after 8 to 512 ms, unless its context has ended.
type repeating struct{ driver.Driver }

func (d repeating) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := d.Driver.EvalAll(ctx, calls)
	if len(calls) < 2 || calls[0].Script.Name() != "acquire" {
		return results
	}
	select {
	case <-ctx.Done():
		return results
	case <-time.After(100 * time.Millisecond):
	}
	return d.Driver.EvalAll(ctx, calls)
}

func (d repeating) Eval(ctx context.Context, call driver.Call) (any, error) {
	reply, err := d.Driver.Eval(ctx, call)
	if call.Script.Name() != "acquire" {
		return reply, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(100 * time.Millisecond):
	}
	return d.Driver.Eval(ctx, call)
}

// A pipeline that the library repeats, since its replies were lost, takes nothing for one
// who has left and has given back what the first time brought.
func TestARepeatedPipelineTakesNothingForWhoLeft(t *testing.T) {
	for _, alone := range []bool{true, false} {
		name := "together"
		if alone {
			name = "alone"
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
				s.Latency(near)
				c, err := zamok.New(repeating{s}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ctx, cancel := context.WithCancel(t.Context())
				var others []<-chan outcome
				if !alone {
					others = lockMany(t.Context(), c, apart)
				}
				left := locking(ctx, c.Mutex("left", nil))
				if !alone {
					others = append(others, locking(t.Context(), c.Mutex("stays", nil)))
				}
				pass(50 * time.Millisecond)
				if !s.Held("left") {
					t.Fatal("the test tries nothing: the call has not come")
				}
				cancel()
				if l := <-left; !errors.Is(l.err, context.Canceled) {
					t.Fatal(l.err)
				}
				pass(10 * time.Millisecond)
				if s.Held("left") {
					t.Fatal("the test tries nothing: it was not given back")
				}
				for _, got := range others {
					if l := <-got; l.err != nil {
						t.Error(l.err)
					}
				}
				pass(5 * time.Second)
				if s.Held("left") {
					ttl, _ := s.TTL("lock:left")
					t.Errorf("it is held by nobody, for another %v", ttl)
				}
				synctest.Wait()
			})
		})
	}
}
