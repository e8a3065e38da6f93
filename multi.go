package zamok

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok/internal/keys"
)

// maxNames is the most that a Multi has: one script takes them all, and nobody else
// is served meanwhile.
const maxNames = 64

// Multi is several locks that are taken together: all of them or none. It is
// immutable, holds nothing itself, and may be shared and made anew at any time. Each
// of its names is an ordinary lock, which a Mutex of that name excludes too.
//
// Two who want some of the same names never wait for each other, in whatever order
// they were given: all wait in one order, that of the names' bytes, having those that
// come before. Whoever takes several locks by calls of Mutex.Lock, one under the
// other, has to keep that order too.
type Multi struct {
	client *Client
	locks  []*Mutex // in the order in which they are waited for
	one    bool     // all lie in one slot of a cluster

	maxHold time.Duration // of the whole; none of the locks has one
	err     error         // a mistake: every call returns it
}

// Multi returns the locks of these names together, 1 to 64 of them, each as for
// Client.Mutex and none twice; their order has no meaning. cfg is for each of them and may be
// nil, but for Wait, which bounds the wait for all, and MaxHold, which begins when all are
// held; Key and MinHold are of one lock and must not be set. It sends nothing; a mistake is a
// *ConfigError of every call.
func (c *Client) Multi(names []string, cfg *MutexConfig) *Multi {
	m := &Multi{client: c, one: true}
	if m.err = c.noQuorum("names", "a part of them could be granted by some members only, so take one under the other"); m.err == nil {
		m.err = checkNames(names, cfg)
	}
	for _, name := range names {
		lock := c.Mutex(name, cfg)
		if m.err == nil {
			m.err = lock.err
		}
		if m.err == nil {
			m.maxHold, lock.spec.maxHold = lock.spec.maxHold, 0
			m.locks = append(m.locks, lock)
		}
	}
	if m.err != nil {
		return m
	}
	slices.SortFunc(m.locks, func(a, b *Mutex) int { return cmp.Compare(a.name, b.name) })
	for i, lock := range m.locks[1:] {
		if lock.name == m.locks[i].name {
			m.err = badField("names", "%.64q is given twice", lock.name)
		}
		m.one = m.one && keys.Slot(lock.spec.keys.Lock) == keys.Slot(m.locks[0].spec.keys.Lock)
	}
	return m
}

func checkNames(names []string, cfg *MutexConfig) error {
	switch {
	case len(names) == 0 || len(names) > maxNames:
		return badField("names", "%d; it must be 1 to %d", len(names), maxNames)
	case cfg != nil && cfg.Key != "":
		return badField("MutexConfig.Key", "it is the key of one lock, and there are several names")
	case cfg != nil && cfg.MinHold != 0:
		return badField("MutexConfig.MinHold", "it is for one lock: of several, some would rest that nobody has used")
	}
	return nil
}

// Do waits for all of the locks, runs f with a context that ends when any of the
// leases does, and releases them whatever f does: return, fail or panic. f must stop
// when its context ends. LeasesFrom(ctx) gives the leases.
//
// It returns the errors of Lock, in which case f did not run; else what f returned,
// joined, when any lease was lost while f ran or had gone at the release, with a
// *LostError for each. So a nil error means that f ran to its end under all of them.
func (m *Multi) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.do(ctx, f, m.Lock)
}

// TryDo is Do without waiting: when any of the locks is held it returns a *HeldError
// and f does not run.
func (m *Multi) TryDo(ctx context.Context, f func(ctx context.Context) error) error {
	return m.do(ctx, f, m.TryLock)
}

func (m *Multi) do(ctx context.Context, f func(ctx context.Context) error, take func(ctx context.Context) (*Leases, error)) error {
	if f == nil {
		return badField("function", "it is nil")
	}
	leases, err := take(ctx)
	if err != nil {
		return err
	}
	return doUnder(leases, f)
}

// Lock waits until it has all of the locks. When all are free, that is one request.
// Else it waits for them one after the other, in the order of the names' bytes, at
// each of them behind whoever came before; those that it has are renewed meanwhile.
// When one of these is lost before all are held, which did no harm, it begins again.
//
// Errors are those of Mutex.Lock. A *HeldError names the lock that was in the way; a
// *LostError, one that an operator broke while another was waited for. After an error
// none is held: what had been taken is released, which Lock waits for unless ctx has
// ended.
//
// A Lock under the context of a lease of one of the names would wait for itself and is
// an error, before anything is sent.
func (m *Multi) Lock(ctx context.Context) (*Leases, error) {
	if m.err != nil {
		return nil, m.err
	}
	for _, lock := range m.locks {
		if err := lock.checkNested(ctx); err != nil {
			return nil, err
		}
	}
	return m.acquire(ctx, true)
}

// TryLock takes all of the locks if each is free and nobody waits for it, and returns
// a *HeldError that names one which is not. Other errors, and what is left, are those
// of Lock. See Mutex.TryLock.
func (m *Multi) TryLock(ctx context.Context) (*Leases, error) {
	if m.err != nil {
		return nil, m.err
	}
	return m.acquire(ctx, false)
}

// String names the locks, for errors.
func (m *Multi) String() string {
	names := make([]string, len(m.locks))
	for i, lock := range m.locks {
		names[i] = lock.spec.String()
	}
	return strings.Join(names, ", ")
}
