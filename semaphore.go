package zamok

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// maxPermits is the most that a semaphore has.
const maxPermits = 1_000_000

// Semaphore is a named number of permits: so many leases of it are held at a time,
// across all processes. It is immutable, holds nothing itself, and may be shared
// and made anew at any time.
//
// Each permit ends by itself when its holder does not renew it, by the server's
// clock, so one that crashed gives its permit back after a TTL. Waiters are served
// in the order in which they came.
type Semaphore struct{ m *Mutex }

// SemaphoreConfig is what one semaphore wants to be different. The zero value of
// every field is its default.
type SemaphoreConfig struct {
	// TTL, Wait, MaxHold, Grace and Reason are those of MutexConfig, for each
	// permit.
	TTL     time.Duration
	Wait    time.Duration
	MaxHold time.Duration
	Grace   time.Duration
	Reason  string
}

// Semaphore returns the semaphore of that name: 1 to 512 bytes, any but NUL; braces
// are a hash tag, as for Client.Mutex. permits is how many it has, 1 to 1,000,000:
// all who use the name must say the same, unless SetLimit has set it for all. cfg
// may be nil. It sends nothing; a mistake is a *ConfigError of every call. A
// semaphore and a mutex of one name have nothing to do with each other.
func (c *Client) Semaphore(name string, permits int, cfg *SemaphoreConfig) *Semaphore {
	if cfg == nil {
		cfg = &SemaphoreConfig{}
	}
	m := &Mutex{client: c, name: name}
	m.spec, m.err = newSpec(&c.cfg, name, &MutexConfig{TTL: cfg.TTL, Wait: cfg.Wait, MaxHold: cfg.MaxHold, Grace: cfg.Grace, Reason: cfg.Reason})
	var bad *ConfigError
	if errors.As(m.err, &bad) {
		bad.Field = strings.Replace(bad.Field, "MutexConfig", "SemaphoreConfig", 1)
	}
	if m.err == nil {
		m.err = c.noQuorum("Semaphore", "its members keep no permits")
	}
	if m.err == nil {
		m.err = checkPermits(permits, 1)
	}
	if m.err == nil {
		m.spec.keys, m.err = keys.ForSemaphore(c.cfg.Prefix, name)
	}
	if m.err == nil {
		m.spec.kind = permit
		m.spec.permits = strconv.Itoa(permits)
		m.nested = &leaseNamed{client: c, key: m.spec.keys.Lock}
	}
	return &Semaphore{m: m}
}

func checkPermits(n, least int) error {
	if n < least || n > maxPermits {
		return badField("permits", "%d; it must be %d to %d", n, least, maxPermits)
	}
	return nil
}

// Name returns the name given to Client.Semaphore.
func (s *Semaphore) Name() string { return s.m.name }

// Do waits for a permit, runs f with a context that ends when the permit does, and
// gives it back whatever f does. See Mutex.Do.
func (s *Semaphore) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return s.m.Do(ctx, f)
}

// TryDo is Do without waiting: when no permit is free it returns a *HeldError and f
// does not run.
func (s *Semaphore) TryDo(ctx context.Context, f func(ctx context.Context) error) error {
	return s.m.TryDo(ctx, f)
}

// Acquire waits until a permit is free and takes it. Waiters are served in the
// order in which they came, across all processes. Errors are those of Mutex.Lock; a
// *HeldError says how many permits there are.
//
// An Acquire under the context of a permit of the same semaphore and Client is an
// error: when all who hold one want a second, nobody goes on.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) { return s.m.Lock(ctx) }

// TryAcquire takes a permit if one is free and nobody waits for it, and returns a
// *HeldError if not. See Mutex.TryLock.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lease, error) { return s.m.TryLock(ctx) }

// ExtendToken raises what is left of a permit that was detached: see
// Mutex.ExtendToken.
func (s *Semaphore) ExtendToken(ctx context.Context, token string, d time.Duration) error {
	return s.m.ExtendToken(ctx, token, d)
}

// ReleaseToken releases a permit that was detached: see Mutex.ReleaseToken.
func (s *Semaphore) ReleaseToken(ctx context.Context, token string) error {
	return s.m.ReleaseToken(ctx, token)
}

// SetLimit sets how many permits the semaphore has, 1 to 1,000,000, for all who use
// it, whatever they say themselves; 0: what they say counts again. It stays until
// it is set anew. Nobody loses a permit: when there are fewer, new ones are given
// once enough have come back; when there are more, the first waiters have them at
// once (after a 0 within 2 s).
//
// It returns a *ConfigError, a *ServerError, ErrClosed, ctx's error, or one that
// wraps ErrUnavailable; after the last two it is not known whether it was set.
func (s *Semaphore) SetLimit(ctx context.Context, permits int) error {
	if s.m.err != nil {
		return s.m.err
	}
	if err := checkPermits(permits, 0); err != nil {
		return err
	}
	_, err := s.ask(ctx, strconv.Itoa(permits))
	return err
}

// Usage says how a semaphore is used.
type Usage struct {
	Permits int // how many there are
	InUse   int // how many are held; more than Permits after SetLimit made them fewer
}

// Usage asks the server how many permits there are and how many are held. Errors
// are those of SetLimit. Permits whose lease has ended are dropped, and given on
// when a limit is set.
func (s *Semaphore) Usage(ctx context.Context) (Usage, error) {
	if s.m.err != nil {
		return Usage{}, s.m.err
	}
	ans, err := s.ask(ctx, "")
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Permits: int(ans.permits), InUse: int(ans.inUse)}
	if u.Permits == 0 { // nobody set it
		u.Permits, err = strconv.Atoi(s.m.spec.permits)
	}
	return u, err
}

// ask runs the limit script until there is an answer.
func (s *Semaphore) ask(ctx context.Context, permits string) (answer, error) {
	c := s.m.client
	if !c.enter() {
		return answer{}, ErrClosed
	}
	defer c.leave()
	a := &attempt{c: c, s: s.m.spec, verb: "asked", began: c.clock.now()}
	return a.insist(ctx, s.m.spec.deciding(driver.Call{Script: lua.SemLimit, Keys: s.m.spec.keys.Main, Args: []string{permits}}))
}
