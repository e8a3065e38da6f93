package traffic

import (
	"context"
	"sync/atomic"

	"github.com/zamok-go/zamok/driver"
)

// tap is a Driver that notes for a call of Take what the server said to it, and to no
// other goroutine of the client.
type tap struct{ driver.Driver }

// inquiry is what came of the requests of a call of Take.
type inquiry struct {
	queued func() // the caller stands in the server's queue
	sent   atomic.Int64
}

type inquiryKey struct{}

// inquire has the requests that are sent under the context noted.
func inquire(ctx context.Context, queued func()) (context.Context, *inquiry) {
	q := &inquiry{queued: queued}
	return context.WithValue(ctx, inquiryKey{}, q), q
}

// Eval implements driver.Driver.
func (t tap) Eval(ctx context.Context, call driver.Call) (any, error) {
	q, ok := ctx.Value(inquiryKey{}).(*inquiry)
	if ok {
		q.sent.Add(1)
	}
	reply, err := t.Driver.Eval(ctx, call)
	const ticket = 3 // of those who waited behind others of their client: their place is by an estimate, and may be later
	list, isList := reply.([]any)
	if ok && isList && len(list) > 0 && list[0] == "waits" && call.Args[ticket] == "0" && q.queued != nil {
		q.queued()
	}
	return reply, err
}
