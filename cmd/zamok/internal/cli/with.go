package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok"
)

// held is a lease, or several that were taken together.
type held interface {
	Context() context.Context
	Deadline() time.Time
	Extend(ctx context.Context, d time.Duration) error
	Release(ctx context.Context) error
}

func (c *claim) addWith(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.with, "with", nil, "take the lock `NAME` too, all or none; may be given several times, in any\norder")
}

// checkWith is for what addWith has added. The name was checked.
func (c *claim) checkWith() error {
	for i, name := range c.with {
		if name == c.name || slices.Contains(c.with[:i], name) {
			return usage("leave it out", "--with %q: that lock is named before", name)
		}
		if err := checkName(c.server.prefix, name); err != nil {
			return err
		}
	}
	if len(c.with) > 63 {
		return usage("one lock for what belongs together serves better", "%d locks; at most 64 are allowed", 1+len(c.with))
	}
	return nil
}

// acquire takes the lock, a reader's share of it, a permit, or the several locks.
func (c *claim) acquire(ctx context.Context, client *zamok.Client, m *zamok.MutexConfig) (held, error) {
	switch {
	case len(c.with) > 0:
		l := client.Multi(append([]string{c.name}, c.with...), m)
		return taken(ctx, c.try, l.TryLock, l.Lock)
	case c.slots > 0:
		s := client.Semaphore(c.name, c.slots, &zamok.SemaphoreConfig{TTL: m.TTL, Wait: m.Wait, Grace: m.Grace, Reason: m.Reason})
		return taken(ctx, c.try, s.TryAcquire, s.Acquire)
	case c.shared:
		l := client.RWMutex(c.name, m)
		return taken(ctx, c.try, l.TryRLock, l.RLock)
	}
	l := client.Mutex(c.name, m)
	return taken(ctx, c.try, l.TryLock, l.Lock)
}

func taken[L held](ctx context.Context, try bool, tryLock, lock func(context.Context) (L, error)) (held, error) {
	if try {
		lock = tryLock
	}
	l, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// leaseOf is the lease of the lock that the command is told of.
func (c *claim) leaseOf(h held) *zamok.Lease {
	if several, ok := h.(*zamok.Leases); ok {
		return several.Lease(c.name)
	}
	return h.(*zamok.Lease)
}

// which is the name of the lock that err is about: of several, any.
func (c *claim) which(err error) string {
	var inTheWay *zamok.HeldError
	var lost *zamok.LostError
	switch {
	case len(c.with) == 0:
	case errors.As(err, &inTheWay):
		return inTheWay.Name
	case errors.As(err, &lost):
		return lost.Name
	}
	return c.name
}
