package zamok

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/wake"
)

// closeWait is how long Close waits for what must still be told to the server.
const closeWait = 2 * time.Second

// callLimit bounds one call that is tried again when it fails.
const callLimit = 2 * time.Second

// Client takes locks on one deployment. It is safe for use by many goroutines;
// a process usually has one for each deployment. It holds no goroutine until
// somebody waits, or a lease of more than 30 s is held: then, until it is closed,
// that of the subscription.
//
// Calls that many goroutines make at the same time go to the server together, as a
// pipeline: hooks of the client library see it with a context that has none of the
// callers' values.
type Client struct {
	cfg      Config
	d        driver.Driver
	quorum   *quorum // what d is, of a client that NewQuorum made
	id       string
	calls    atomic.Uint64 // numbers tokens
	args     sync.Pool     // of *[4]string: the arguments of a release
	attempts sync.Pool     // of *attempt: those that were served in a line
	clock    clock
	// inboxes are where this client is told what it was given; inbox is the one to
	// which operators speak, and which is enough where there is no cluster.
	inboxes *wake.Inboxes
	inbox   *wake.Inbox
	channel string // of inbox
	keeper  keeper
	diary   diary
	seen    identities
	bundle  bundle
	apart   atomic.Bool // this is a cluster: no script takes keys of several slots

	closedUntil atomic.Int64 // the instant at which the last quarantine that was seen ends

	// background counts what Close waits for: calls under way, and what goes on
	// behind them, abandons and renewals, which have backgroundCtx.
	background     sync.WaitGroup
	backgroundCtx  context.Context
	stopBackground context.CancelFunc

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	// closeGate makes "is it closed, or does the group count one more" one step:
	// a WaitGroup must not grow from zero while it is waited for.
	closeGate sync.RWMutex
}

// New makes a client that talks through the driver. It sends nothing; the
// client library behind the driver stays the caller's and must be closed after
// this client. cfg may be nil. The error is a *ConfigError.
func New(d driver.Driver, cfg *Config) (*Client, error) {
	if d == nil {
		return nil, badField("driver", "it is nil")
	}
	full, err := cfg.withDefaults()
	if err == nil {
		err = checkQuarantine(d, full.Quarantine)
	}
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: full, d: d, id: newID(), closing: make(chan struct{})}
	c.clock.init()
	c.bundle.client = c
	c.backgroundCtx, c.stopBackground = context.WithCancel(context.Background())
	c.keeper.init(c)
	c.diary.init(c)
	c.apart.Store(d.Clustered())
	c.inboxes = wake.NewInboxes(wake.Config{Driver: d, Orphan: c.orphan, Broken: c.keeper.asked, Changed: c.subscriptionChanged})
	c.channel = keys.Inbox(full.Prefix, c.id)
	c.inbox = c.inboxes.Take(c.channel)
	return c, nil
}

// ID returns the client's id, HOST/PID/RANDOM, with which its tokens begin.
func (c *Client) ID() string { return c.id }

// Prefix returns Config.Prefix, for packages that keep keys of their own beside
// the client's locks.
func (c *Client) Prefix() string { return c.cfg.Prefix }

// Close releases everything that the client holds, ends the waiting of its
// callers with ErrClosed, and waits at most 2 s for what must be told to the
// server. The contexts of its leases end first, with a *LostError. It returns an
// error when not all could be told; then those locks end by their TTL.
func (c *Client) Close() error {
	var err error
	c.closeOnce.Do(func() {
		c.closeGate.Lock()
		close(c.closing)
		c.closeGate.Unlock()
		timer, began := time.NewTimer(closeWait), c.clock.now()
		defer timer.Stop()
		err = c.releaseAll(c.keeper.close())
		done := make(chan struct{})
		go func() {
			c.background.Wait()
			c.quorum.settle(false)
			close(done)
		}()
		select {
		case <-done:
			limit := max((closeWait-c.clock.now().sub(began))/2, 50*time.Millisecond)
			c.depart(limit) // only now: an announcement may have been under way
			c.diary.close(limit)
		case <-timer.C:
			err = errors.Join(err, fmt.Errorf("zamok: closed with calls under way, what they hold ends by its TTL: %w", ErrUnavailable))
		}
		c.stopBackground()
		c.inboxes.Close()
		<-done // soon: what is under way ends with backgroundCtx or its own limit
		c.quorum.settle(true)
	})
	return err
}

func (c *Client) releaseAll(leases []*Lease) error {
	calls := make([]driver.Call, len(leases))
	for i, l := range leases {
		calls[i] = l.releaseCall(nil, closeWait)
	}
	if len(calls) == 0 {
		return nil
	}
	var errs []error
	for i, r := range c.d.EvalAll(c.backgroundCtx, calls) {
		if r.Err != nil && !(isMoving(r.Err) && leases[i].letGo(c.backgroundCtx, closeWait)) {
			errs = append(errs, fmt.Errorf("zamok: lock %q not released: %w", leases[i].spec.keys.Name, r.Err))
		}
	}
	return errors.Join(errs...)
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// enter counts the caller among what Close waits for; false when the client is
// closed. Whoever has entered may count more in with background.Go.
func (c *Client) enter() bool {
	c.closeGate.RLock()
	defer c.closeGate.RUnlock()
	if c.isClosed() {
		return false
	}
	c.background.Add(1)
	return true
}

func (c *Client) leave() { c.background.Done() }

func (c *Client) newToken() string {
	var buf [96]byte
	b := append(buf[:0], tokenMark...)
	b = append(b, c.id...)
	b = append(b, '/')
	b = strconv.AppendUint(b, c.calls.Add(1), 36)
	return string(b)
}

// eval runs a script whose reply is an answer.
func (c *Client) eval(ctx context.Context, call driver.Call) (answer, error) {
	reply, err := c.bundle.eval(ctx, call)
	return answerOf(driver.Result{Reply: reply, Err: err})
}

// subscriptionChanged is told when waiters can be woken, or no more.
func (c *Client) subscriptionChanged(channel string, err error) {
	if err == nil && channel == c.channel {
		c.keeper.heard()
	}
	if err != nil && !c.isClosed() {
		var refused *driver.ServerError
		if errors.As(err, &refused) {
			c.cfg.Logger.Warn("zamok: may not subscribe, so waiters poll", slog.String("channel", channel), slog.Any("err", err))
		} else {
			c.cfg.Logger.Warn("zamok: subscription broken, waiters poll until it is back", slog.String("channel", channel), slog.Any("err", err))
		}
	}
	if f := c.cfg.Trace.Subscription; f != nil {
		f(err)
	}
}
