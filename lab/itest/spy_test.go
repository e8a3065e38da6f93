package itest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zamok-go/zamok/driver"
)

// spy is a driver that notes what passes: how many calls, and the ticket with
// which each token waits.
type spy struct {
	driver.Driver
	calls   atomic.Int64
	tickets *sync.Map // token → ticket, in µs; may be nil
}

func (s *spy) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script.Name() != "announce" { // off the hot path, at any time
		s.calls.Add(1)
	}
	reply, err := s.Driver.Eval(ctx, call)
	if f, ok := reply.([]any); ok && s.tickets != nil && strings.HasSuffix(call.Script.Name(), "acquire") {
		switch {
		case f[0] == "waits":
			s.tickets.Store(call.Args[0], f[7])
		case f[0] == "granted" && call.Script.Name() != "acquire":
			// One of several who asks again, because a message was late, is given
			// another fence, which says nothing of the order.
			s.tickets.Delete(call.Args[0])
		}
	}
	return reply, err
}

func (s *spy) count() int64 { return s.calls.Load() }
