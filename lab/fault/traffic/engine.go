package traffic

import (
	"context"
	"errors"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// Engine is what is tried: a client of zamok, or one of the broken locks that the
// checkers are tried on.
type Engine interface {
	// Take takes a lease. Its errors are those of zamok.
	Take(ctx context.Context, w Want) (Lease, error)
	// Close gives back what the engine has, and returns when nothing of it is left.
	Close() error
}

// Want is what somebody wants a lease of.
type Want struct {
	Kind  history.Kind
	Name  string
	Wait  bool
	Limit int           // permits that there are
	Least time.Duration // zamok.MutexConfig.MinHold
	Most  time.Duration // zamok.MutexConfig.MaxHold
	// Queued is called, if it is there, when the caller stands in the server's queue.
	Queued func()
}

// Lease is what a zamok.Lease can do, as far as any lock can.
type Lease interface {
	Fence() int64
	Deadline() time.Time
	Context() context.Context
	Err() error
	Extend(ctx context.Context, d time.Duration) error
	Release(ctx context.Context) error
	// Write sets a key of the server to value, fence and how often value was written
	// there, if the lease still holds.
	Write(ctx context.Context, key string, value int64) error
}

// reason is why a lease was lost, if that is what an error says.
func reason(err error) string {
	var e *zamok.LostError
	if errors.As(err, &e) {
		return string(e.Reason)
	}
	return ""
}

// outcomeOf is what an error means. taking: of a call that would have taken a lease;
// otherwise of one of a lease.
func outcomeOf(ctx context.Context, err error, taking bool) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, zamok.ErrUnknown):
		return history.Unknown
	case errors.Is(err, zamok.ErrLost), errors.Is(err, zamok.ErrReleased):
		return history.Lost
	case taking && ctx.Err() != nil:
		return history.Cancelled
	case errors.Is(err, zamok.ErrHeld):
		return history.Held
	case errors.As(err, new(*zamok.QuarantineError)), errors.As(err, new(*zamok.ServerError)), errors.Is(err, zamok.ErrClosed):
		return history.Refused
	default:
		return history.Unknown
	}
}
