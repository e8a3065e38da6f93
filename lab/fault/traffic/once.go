package traffic

import (
	"context"
	"errors"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/once"
)

// Doer is an Engine that can do a thing once.
type Doer interface {
	// Once returns the outcome of the key, or has f make one. until is the deadline of
	// f's lease, as it is when f begins. Of one that returns errInterrupted nobody learns
	// how it ended.
	Once(ctx context.Context, policy history.Kind, key string, f func(ctx context.Context, until time.Time) (int64, error)) (int64, error)
}

// errInterrupted is what a function returns that is to have lost its lease.
var errInterrupted = errors.New("it is interrupted")

// retention is longer than anybody asks for a key.
const retention = 2 * time.Minute

func (c *client) Once(ctx context.Context, policy history.Kind, key string, f func(ctx context.Context, until time.Time) (int64, error)) (int64, error) {
	cfg := &once.Config{Policy: once.Retry, Retention: retention}
	if policy == history.GiveUp {
		cfg.Policy = once.GiveUp
	}
	o, err := once.New(c.Client, cfg)
	if err != nil {
		return 0, err
	}
	out, err := once.Do(ctx, o, key, func(ctx context.Context, _ once.Run) (int64, error) {
		l := zamok.LeaseFrom(ctx)
		value, err := f(ctx, l.Deadline())
		if errors.Is(err, errInterrupted) {
			_ = l.Release(ctx) // so that its end cannot be stored
		}
		return value, err
	})
	return out.Value, err
}
