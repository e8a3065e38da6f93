package zamok

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// Lease is a held lock, a reader's share of one, or a permit of a semaphore. It is
// made by Mutex.Lock, Mutex.TryLock, Mutex.Resume and the like of RWMutex and Semaphore, is renewed by itself, and
// ends by Release, by loss, or, without anybody being told, by its TTL after its
// context has ended. It is safe for use by many goroutines.
type Lease struct {
	client *Client
	spec   *spec
	token  string
	fence  int64
	began  instant
	under  context.Context          // it was taken under
	ctx    atomic.Pointer[leaseCtx] // made when it is asked for
	reads  atomic.Pointer[spec]     // what it became when Downgrade was called
	queued bool                     // its token stood in the queue, so that a message may tell of its hand-over

	// The rest is guarded by client.keeper.mu.

	bound    bool // its token was shown, or a call of the holder with it is of unknown outcome
	passedOn bool // to another goroutine, and its token with it
	again    bool // renew again after the renewal that is under way
	state    leaseState

	at    int32 // index in the keeper's heap, -1 when not in it
	spare int32 // how many fences of its block come after its own
	calls int32 // of the holder, with its token, that are under way
	line  *line // it is the lease of

	lost    *LostError // why, once it is lost
	renewal error      // the last failure of a renewal
	kept    instant    // until then the server surely keeps it
	longest instant    // when MutexConfig.MaxHold is over; never without one
	granted time.Duration
	renewAt instant // when to renew; never while a renewal is under way
	due     instant // its key there
}

type leaseState uint8

const (
	held     leaseState = iota
	lost                // nobody here released it
	released            // by Release, or given away by Detach
)

// margin is taken off what the server granted: clocks run at slightly different
// rates (1 %), and the server's expiry is a whole number of milliseconds.
func margin(granted time.Duration) time.Duration { return granted/100 + 2*time.Millisecond }

// renewLimit bounds one try, so that several fit before the lease ends.
func renewLimit(ttl time.Duration) time.Duration {
	return min(max(ttl/5, 100*time.Millisecond), 3*time.Second)
}

// leaseCtx is the lease's context: a cancellable one that carries the lease and
// whose Err looks at the clock, since a timer that has not fired proves nothing
// after a pause of the process.
type leaseCtx struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

// leaseOf asks a context for the innermost lease; leaseNamed for one of a name.
type (
	leaseOf    struct{}
	leaseNamed struct {
		client *Client
		key    string
	}
)

func (c *leaseCtx) Value(key any) any {
	switch k := key.(type) {
	case leaseOf:
		return c.lease
	case *leaseNamed:
		if c.lease.client == k.client && c.lease.spec.keys.Lock == k.key {
			return c.lease
		}
	}
	return c.Context.Value(key)
}

func (c *leaseCtx) Err() error {
	for l := c.lease; l != nil; l = LeaseFrom(l.under) { // it ends with those around it
		if err := l.Err(); err != nil {
			l.endContext(err) // whoever noticed first may not have come to that yet
		}
	}
	return c.Context.Err()
}

// LeaseFrom returns the lease under which ctx runs: the innermost, in a function
// called by Do or TryDo or with a lease's context. It is nil when there is none.
func LeaseFrom(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseOf{}).(*Lease)
	return l
}

func (c *Client) newLease(ctx context.Context, s *spec, token string, fence int64, from instant, granted time.Duration) *Lease {
	l := c.prepare(ctx, s)
	l.token, l.fence = token, fence
	l.begin(from, granted)
	return l
}

// prepare makes what will be a lease once it has a token and a fence, and begins.
func (c *Client) prepare(ctx context.Context, s *spec) *Lease {
	return &Lease{client: c, spec: s, under: ctx, at: -1}
}

// begin makes it one that is held.
func (l *Lease) begin(from instant, granted time.Duration) {
	granted = l.client.cfg.believed(granted)
	l.began = l.client.clock.now()
	l.longest = never
	l.keep(from.add(granted-margin(granted)), granted)
	l.renewAt = from.add(renewAfter(granted))
	l.client.keeper.add(l)
}

// keep notes until when the server keeps the lease. The keeper's mu is held, or
// nobody knows of the lease yet.
func (l *Lease) keep(until instant, granted time.Duration) {
	l.kept, l.granted = until, granted
}

// end is when the lease is over. mu is held.
func (l *Lease) end() instant { return min(l.kept, l.longest) }

// bound begins what MaxHold bounds, until that instant. mu is held.
func (k *keeper) bound(l *Lease, longest instant) {
	l.longest = longest
	if l.at >= 0 {
		k.reschedule(l)
	}
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.spec.keys.Name }

// Context returns the lease's context. It carries the values of the context
// that was given to Lock, and it ends, with a cause (context.Cause):
//
//   - a *LostError when the lease is lost, MutexConfig.Grace before it can end on
//     the server;
//   - ErrReleased when it was released or detached;
//   - that context's own cause when that context ends. Renewal stops then too, so
//     a Release that is forgotten costs one TTL.
func (l *Lease) Context() context.Context {
	if c := l.ctx.Load(); c != nil {
		return c
	}
	c := &leaseCtx{lease: l}
	c.Context, c.cancel = context.WithCancelCause(l.under)
	if !l.ctx.CompareAndSwap(nil, c) {
		c.cancel(nil)
		return l.ctx.Load()
	}
	if err := l.Err(); err != nil { // whoever ended it may have seen no context
		c.cancel(err)
	}
	return c
}

// endContext ends the context, if anybody has asked for it, once the lease has ended.
func (l *Lease) endContext(why error) {
	if c := l.ctx.Load(); c != nil {
		c.cancel(why)
	}
}

// abandoned says whether the context that the lease was taken under has ended. It asks
// no Err, since that of another lease's context takes mu, which is held.
func (l *Lease) abandoned() bool {
	select {
	case <-l.under.Done():
		return true
	default:
		return false
	}
}

// Fence returns the fencing token: a number that is larger for every later
// holder of the name. Give it to the resource that the lock protects and let
// the resource refuse what is smaller than what it has seen. It is about the server's
// time in microseconds, at most some milliseconds more, and below 2^53. Goroutines that
// pass the lock on among themselves (Config.HandOver) have consecutive ones.
func (l *Lease) Fence() int64 { return l.fence }

// lastFence is the last one that was reserved with that of the lease.
func (l *Lease) lastFence() int64 { return l.fence + int64(l.spare) }

// Token returns what tells this lease from all others. Whoever has it can resume
// or release the lease, so one whose token was asked for is not passed on within the
// process (Config.HandOver). Of one that was, it is a token that holds nothing.
func (l *Lease) Token() string {
	k := &l.client.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.passedOn {
		return l.token + "-" + strconv.FormatInt(l.fence, 10)
	}
	l.bind()
	return l.token
}

// Deadline returns the time at which the lease may end on the server if it is
// not renewed until then: the holder must have stopped. It moves with every
// renewal. Before the first renewal of a lock that another holder passed on, it
// is at most 2 s ahead.
func (l *Lease) Deadline() time.Time { return l.client.clock.time(l.ends()) }

func (l *Lease) ends() instant {
	l.client.keeper.mu.Lock()
	defer l.client.keeper.mu.Unlock()
	return l.end()
}

// Err returns nil while the lease is held, by the clock and not by what a timer
// has told; then the *LostError or ErrReleased. It asks nobody: see Check.
func (l *Lease) Err() error {
	k := &l.client.keeper
	k.mu.Lock()
	if e := l.lapsed(l.client.clock.now()); e != nil {
		k.mu.Unlock()
		l.tell(e)
		return e
	}
	defer k.mu.Unlock()
	return l.err()
}

// err is what the methods return once the lease is over; nil before. The
// keeper's mu is held.
func (l *Lease) err() error {
	switch {
	case l.lost != nil: // also when it was released after that
		return l.lost
	case l.state == released:
		return ErrReleased
	default:
		return nil
	}
}

// Check asks the server whether the lease is still held: before a final commit.
// It returns nil, a *LostError, ErrReleased, a *ServerError when the server
// refuses, or an error that wraps ErrUnavailable; the last two say nothing about
// the lease. Nothing is changed.
func (l *Lease) Check(ctx context.Context) error { return l.ask(ctx, "0") }

// Extend raises what is left of the lease to at least d, 100 ms to 24 h, at
// once; renewal goes on afterwards. A lease is never shortened. Errors are those
// of Check, and *ConfigError.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if err := l.client.cfg.checkTTL("duration", d); err != nil {
		return err
	}
	return l.ask(ctx, strconv.FormatInt(ceilMS(d), 10))
}

// ask runs the renew script once and takes its answer.
func (l *Lease) ask(ctx context.Context, ms string) error {
	if err := l.use(); err != nil {
		return err
	}
	sure := false
	defer func() { l.used(sure) }()
	sent := l.client.clock.now()
	limit := max(l.ends().sub(sent), time.Millisecond)
	ans, err := l.client.eval(ctx, l.as().renewCall([]string{l.token, ms}, min(limit, l.client.cfg.GiveUp)))
	sure = err == nil
	ans, err = aboutLease(ans, err)
	switch {
	case err == nil && l.outrun(ans):
		return l.ask(ctx, ms)
	case err == nil && ans.status == "renewed":
		return l.renewed(sent, ans, false)
	case err == nil && ans.status == "broken":
		if l.broken(ans.holder) {
			tellAll([]*Lease{l})
		}
		return l.Err()
	case err == nil:
		l.client.gone(ctx, []*Lease{l}, []answer{ans})
		return l.Err()
	}
	if lapsed := l.Err(); lapsed != nil {
		return lapsed
	}
	return l.unanswered(ctx, err)
}

// unanswered says that the server did not answer a question about the lease.
func (l *Lease) unanswered(ctx context.Context, err error) error {
	if r := refusal(l.Name(), err); r != nil {
		return r
	}
	if why := cause(ctx); why != nil {
		return fmt.Errorf("zamok: lock %q: %w; %w", l.Name(), why, unavailable(err))
	}
	return fmt.Errorf("zamok: lock %q: %w", l.Name(), unavailable(err))
}

// Detach gives the lease away: it is no longer renewed nor released by Close,
// and its context ends with ErrReleased. The lock stays taken for what is left of
// it (see Extend), and whoever is given the token can go on with Mutex.Resume, of
// a permit with Semaphore.ExtendToken and ReleaseToken. Nothing is sent. MinHold and MaxHold end with it. The error is a *LostError or
// ErrReleased, and on a quorum a *ConfigError: nothing is done by token there.
func (l *Lease) Detach() (token string, err error) {
	if err := l.client.noQuorum("Detach", "nobody could go on with it"); err != nil {
		return "", err
	}
	if err := l.Err(); err != nil {
		return "", err
	}
	k := &l.client.keeper
	k.mu.Lock()
	if err := l.err(); err != nil {
		k.mu.Unlock()
		return "", err
	}
	l.state = released
	k.remove(l)
	g := gift{lease: l.named(), ends: l.end()}
	if l.queued {
		g.until = l.client.clock.now().add(lateGrant)
	}
	k.give(g)
	k.mu.Unlock()
	l.endContext(ErrReleased)
	return l.token, nil
}
