package zamok

import (
	"context"
	"fmt"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// RWMutex is a named lock that many readers or one writer hold, across all
// processes. It is immutable, holds nothing itself, and may be shared and made anew
// at any time. A Mutex of the same name is its writer: the two exclude each other.
//
// All who wait stand in one queue, in the order in which they came: a reader behind a
// writer who waits is let in after it, and readers who stand next to each other are
// let in together. Each reader has a lease of its own, which ends by itself, by the
// server's clock, when it is not renewed.
type RWMutex struct{ write, read *Mutex }

// RWMutex returns the read/write lock of that name; name and cfg are those of
// Client.Mutex. MutexConfig.MinHold is for its writer alone.
func (c *Client) RWMutex(name string, cfg *MutexConfig) *RWMutex {
	write := c.Mutex(name, cfg)
	if write.err == nil {
		write.err = c.noQuorum("RWMutex", "its members keep no readers")
	}
	read := *write
	if write.err == nil {
		write.spec.rw = true
		read.spec = write.spec.reader()
	}
	return &RWMutex{write: write, read: &read}
}

// Name returns the name given to Client.RWMutex.
func (l *RWMutex) Name() string { return l.write.name }

// Do waits for the lock as its writer and runs f: see Mutex.Do.
func (l *RWMutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return l.write.Do(ctx, f)
}

// TryDo is Do without waiting: see Mutex.TryDo.
func (l *RWMutex) TryDo(ctx context.Context, f func(ctx context.Context) error) error {
	return l.write.TryDo(ctx, f)
}

// Lock waits for the lock and takes it as its writer: see Mutex.Lock. Under a lease
// of a reader it is an error: there is no upgrade, since two readers who both wanted
// to write would wait for each other.
func (l *RWMutex) Lock(ctx context.Context) (*Lease, error) { return l.write.Lock(ctx) }

// TryLock takes the lock as its writer if nobody has it or waits for it: see
// Mutex.TryLock.
func (l *RWMutex) TryLock(ctx context.Context) (*Lease, error) { return l.write.TryLock(ctx) }

// RDo waits for the lock as a reader, runs f with a context that ends when the lease
// does, and gives it back whatever f does: see Mutex.Do.
func (l *RWMutex) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	return l.read.Do(ctx, f)
}

// TryRDo is RDo without waiting: when a writer has the lock, or waits for it, it
// returns a *HeldError and f does not run.
func (l *RWMutex) TryRDo(ctx context.Context, f func(ctx context.Context) error) error {
	return l.read.TryDo(ctx, f)
}

// RLock waits until no writer has the lock, nor came first, and takes it as a
// reader, beside others. Errors are those of Mutex.Lock. Its lease is like any: it is
// renewed, has a fence, which is larger than that of every writer before and smaller than
// that of every writer after, and guarded scripts run under it.
func (l *RWMutex) RLock(ctx context.Context) (*Lease, error) { return l.read.Lock(ctx) }

// TryRLock takes the lock as a reader if no writer has it or waits for it, and
// returns a *HeldError if not. Errors are those of Mutex.TryLock.
func (l *RWMutex) TryRLock(ctx context.Context) (*Lease, error) { return l.read.TryLock(ctx) }

// Resume goes on with a writer's lease that another process detached: see
// Mutex.Resume. A reader's is extended and released by its token.
func (l *RWMutex) Resume(ctx context.Context, token string) (*Lease, error) {
	return l.write.Resume(ctx, token)
}

// ExtendToken raises what is left of a lease that was detached, a writer's or a
// reader's: see Mutex.ExtendToken.
func (l *RWMutex) ExtendToken(ctx context.Context, token string, d time.Duration) error {
	return l.read.ExtendToken(ctx, token, d)
}

// ReleaseToken releases a lease that was detached, a writer's or a reader's: see
// Mutex.ReleaseToken.
func (l *RWMutex) ReleaseToken(ctx context.Context, token string) error {
	return l.read.ReleaseToken(ctx, token)
}

// Downgrade turns the lease of an RWMutex's writer into that of a reader, without the
// lock being free in between, and lets in the readers who wait next in the queue. The lease, its
// context, its token and its fence stay; MinHold ends. A reader's lease is left as it is.
//
// It returns a *ConfigError when the lease is of something else; *LostError or
// ErrReleased; a *ServerError when the server refuses; ctx's error, or one that wraps
// ErrUnavailable: after these the lease still holds, as a writer's or a reader's, and
// Downgrade may be called again.
func (l *Lease) Downgrade(ctx context.Context) error {
	if l.spec.kind == reader {
		return l.Err()
	}
	if !l.spec.rw {
		return badField("lease", "%s: only the writer of an RWMutex, made by Client.RWMutex, becomes a reader", l.spec)
	}
	if err := l.use(); err != nil {
		return err
	}
	defer l.used(false)
	c := l.client
	if !c.enter() {
		return ErrClosed
	}
	defer c.leave()
	// First of all: while nobody knows whether it came about, the lease is asked
	// for as a reader's, which finds it either way.
	l.reads.CompareAndSwap(nil, l.spec.reader())
	a := &attempt{c: c, s: l.spec, verb: "downgraded", token: l.token, began: c.clock.now()}
	ans, err := a.insist(ctx, l.spec.deciding(driver.Call{Script: lua.Downgrade, Keys: l.spec.keys.Main, Args: []string{l.token, l.spec.ttlMS}}))
	switch {
	case err != nil && l.Err() != nil:
		return l.Err()
	case err != nil:
		return fmt.Errorf("%w (the lease still holds, perhaps as a reader's already)", err)
	case ans.status == "granted":
		return l.renewed(a.sent, ans, false)
	case ans.status == "broken":
		if l.broken(ans.holder) {
			tellAll([]*Lease{l})
		}
	default:
		c.gone(ctx, []*Lease{l}, []answer{ans})
	}
	return l.Err()
}

// as is what the lease is of.
func (l *Lease) as() *spec {
	if r := l.reads.Load(); r != nil {
		return r
	}
	return l.spec
}

// outrun says whether a renewal asked for a writer that had become a reader when it
// came.
func (l *Lease) outrun(ans answer) bool {
	return l.reads.Load() != nil && ans.status == "other" && isReaders(ans.holder)
}
