package zamok

import (
	"context"
	"errors"
)

// Mutex is a named lock that at most one lease holds. It is immutable, holds
// nothing itself, and may be shared and made anew at any time.
type Mutex struct {
	client *Client
	spec   *spec
	nested *leaseNamed // asks a context for a lease of this name
	name   string
	err    error // a mistake in the name or the configuration: every call returns it
}

// Mutex returns the lock of that name: 1 to 512 bytes, any but NUL. Braces are a
// Redis hash tag; some that make none are refused, such as "a}b". cfg may be nil. It sends nothing; a mistake is a
// *ConfigError of every call.
func (c *Client) Mutex(name string, cfg *MutexConfig) *Mutex {
	m := &Mutex{client: c, name: name}
	m.spec, m.err = newSpec(&c.cfg, name, cfg)
	if m.err == nil && m.spec.minHold > 0 {
		m.err = c.noQuorum("MutexConfig.MinHold", "a member that loses its data would forget it")
	}
	if m.err == nil {
		m.nested = &leaseNamed{client: c, key: m.spec.keys.Lock}
	}
	return m
}

// Name returns the name given to Client.Mutex.
func (m *Mutex) Name() string { return m.name }

// Do waits for the lock, runs f with a context that ends when the lease does,
// and releases the lock whatever f does: return, fail or panic. f must stop when
// its context ends. LeaseFrom(ctx) gives the lease to code deep within f.
//
// It returns the errors of Lock, in which case f did not run; else what f
// returned, joined, when the lease was lost while f ran or had gone at the
// release, with a *LostError. So a nil error means that f ran to its end under
// the lock, as far as anybody was asked: a release that passes the lock on within
// the process asks nobody (Config.HandOver), and a loss of these few milliseconds is
// told to the last to whom it was passed.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		return badField("function", "it is nil")
	}
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return doUnder(lease, f)
}

// TryDo is Do without waiting: when the lock is held it returns a *HeldError and
// f does not run.
func (m *Mutex) TryDo(ctx context.Context, f func(ctx context.Context) error) error {
	if f == nil {
		return badField("function", "it is nil")
	}
	lease, err := m.TryLock(ctx)
	if err != nil {
		return err
	}
	return doUnder(lease, f)
}

// underLease is a lease, or several together.
type underLease interface {
	Context() context.Context
	Release(ctx context.Context) error
}

func doUnder(l underLease, f func(ctx context.Context) error) (err error) {
	defer func() {
		release := l.Release(context.Background())
		if errors.Is(release, ErrReleased) {
			release = nil // f released or detached it, knowingly
		}
		// f often returns the cause of its context, which is the same loss.
		if release != nil && !errors.Is(err, release) {
			err = errors.Join(err, release)
		}
	}()
	return f(l.Context())
}

// Lock waits until the lock is free and takes it. Waiters are served in the order
// in which they came, across all processes, but that those of one client pass the lock
// on among themselves for a few milliseconds: Config.HandOver.
//
// It returns a *HeldError when MutexConfig.Wait has passed or ctx has ended while
// another held the lock (errors.Is then holds for ErrHeld and for ctx's error); a
// *ServerError when the server refuses for good; ErrUnavailable when it gave no
// usable answer for Config.GiveUp; ErrClosed; *ConfigError. After an error nothing
// is held, and the place in the queue is given up within moments.
//
// A Lock under the context of a lease of the same name and Client would wait for
// itself and is an error: locks are not re-entrant; helpers use LeaseFrom.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	if m.err != nil {
		return nil, m.err
	}
	if err := m.checkNested(ctx); err != nil {
		return nil, err
	}
	return m.client.acquire(ctx, m.spec, true)
}

// TryLock takes the lock if it is free and nobody waits for it, and returns a
// *HeldError if not. It never waits for the holder; for a server that does not
// answer it waits up to Config.GiveUp. Under the caller's own lease of the name it
// returns a *HeldError too. Other errors are those of Lock.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	if m.err != nil {
		return nil, m.err
	}
	return m.client.acquire(ctx, m.spec, false)
}

// checkNested says whether ctx is that of a lease of the same name.
func (m *Mutex) checkNested(ctx context.Context) error {
	if l, ok := ctx.Value(m.nested).(*Lease); ok && l.Err() == nil {
		return m.wouldWait(l.as())
	}
	return nil
}

// wouldWait says why a call that waits under a lease of the same name, of that
// spec, is a mistake.
func (m *Mutex) wouldWait(has *spec) error {
	switch {
	case has.kind == permit:
		return badField("context", "semaphore %q: this context belongs to a permit of it; when all who hold one want a second, nobody goes on (LeaseFrom gives the permit)", m.name)
	case has.kind == reader && m.spec.kind == writer:
		return badField("context", "lock %q: this context belongs to a reader of it, and there is no upgrade: two readers who both wanted to write would wait for each other; release it, lock, and look again at what was read", m.name)
	case has.kind == reader:
		return badField("context", "lock %q: this context belongs to a reader of it; a second share would wait behind a writer who waits for the first (LeaseFrom gives the lease)", m.name)
	}
	return badField("context", "lock %q would wait for itself: this context belongs to a lease of it (locks are not re-entrant; LeaseFrom gives the lease)", m.name)
}
