package itest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// spy is a driver that notes what passes: how many calls, and with which ticket and
// since when each token waits.
type spy struct {
	driver.Driver
	calls      atomic.Int64
	subscribed atomic.Int64 // how often the server confirmed a subscription
	tickets    *sync.Map    // token → *standing; may be nil
}

// standing is how a token stands in the queue, by the server's clock in µs.
type standing struct {
	ticket string
	since  int64
	client *spy // set when it had lost its place, and stood again
}

func (s *spy) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script.Name() != "announce" { // off the hot path, at any time
		s.calls.Add(1)
	}
	reply, err := s.Driver.Eval(ctx, call)
	if f, ok := reply.([]any); ok && s.tickets != nil && strings.HasSuffix(call.Script.Name(), "acquire") {
		switch {
		case f[0] == "waits" && f[1] == "0": // it did not stand there until now
			now := &standing{ticket: f[7].(string), since: f[3].(int64)}
			if _, again := s.tickets.Swap(call.Args[0], now); again {
				now.client = s
			}
		case f[0] == "granted" && call.Script.Name() != "acquire":
			// One of several who asks again, because a message was late, is given
			// another fence, which says nothing of the order.
			s.tickets.Delete(call.Args[0])
		}
	}
	return reply, err
}

func (s *spy) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	return s.Driver.Subscribe(ctx, limit, channel, func(e driver.Event) {
		if e.Kind == driver.Subscribed {
			s.subscribed.Add(1)
		}
		handle(e)
	})
}

func (s *spy) count() int64 { return s.calls.Load() }
