// Package wake keeps the subscriptions of a client, one unless it is in a cluster,
// and tells each waiter what concerns it.
//
// A message is a hint that is never relied on: it may come late, twice or never.
// What a waiter does about that is its own business (it has a timer, and asks
// the server); this package only promises that it never blocks, that a message
// for a token that is not waiting is handed to the orphan function, and that
// every break of the subscription is told to all waiters as a doubt.
package wake

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// Poll is the inbox of a waiter that may not subscribe and polls instead.
const Poll = "-"

// retryDenied is how long an inbox polls before it asks again for a
// subscription that the server had refused.
const retryDenied = time.Minute

// suspectEvery is the least time between two subscriptions dropped by Suspect:
// a server that never counts us must not make us subscribe without end.
const suspectEvery = 10 * time.Second

// Grant is what a hand-over tells the waiter that it chose.
type Grant struct {
	Token string
	Fence int64
	Time  int64         // server time of the grant, in µs
	TTL   time.Duration // what was granted
	Lock  string        // the lock's key
}

// parse reads a message; false for what is none of ours.
func parse(payload string) (Grant, bool) {
	// The lock's key comes last, for it may contain spaces.
	f := strings.SplitN(payload, " ", 6)
	if len(f) != 6 || f[0] != "grant" || f[1] == "" || f[5] == "" {
		return Grant{}, false
	}
	fence, err1 := strconv.ParseInt(f[2], 10, 64)
	at, err2 := strconv.ParseInt(f[3], 10, 64)
	ms, err3 := strconv.ParseInt(f[4], 10, 64)
	if errors.Join(err1, err2, err3) != nil || fence <= 0 || at <= 0 || ms <= 0 || ms > 1<<40 {
		return Grant{}, false
	}
	return Grant{Token: f[1], Fence: fence, Time: at, TTL: time.Duration(ms) * time.Millisecond, Lock: f[5]}, true
}

// parseNext reads the message that tells a waiter that it is the first now: next,
// token, what is left of the holder's lease in ms, lock key.
func parseNext(payload string) (token string, lease time.Duration, ok bool) {
	f := strings.SplitN(payload, " ", 4)
	if len(f) != 4 || f[0] != "next" || f[1] == "" {
		return "", 0, false
	}
	ms, err := strconv.ParseInt(f[2], 10, 64)
	return f[1], time.Duration(ms) * time.Millisecond, err == nil && ms < 1<<40
}

// parseBreak reads the message that tells a holder to ask the server, since an
// operator broke its lease: break, token, lock key.
func parseBreak(payload string) (token string, ok bool) {
	f := strings.SplitN(payload, " ", 3)
	if len(f) != 3 || f[0] != "break" || f[1] == "" {
		return "", false
	}
	return f[1], true
}

// Waiter is one who waits. Its channels hold one element each, the newest.
type Waiter struct {
	token string
	Grant chan Grant
	Next  chan time.Duration // it is the first in the queue now, behind a lease of this length
	Doubt chan struct{}      // the subscription broke or came back: ask the server
}

// clear empties the channels.
func (w *Waiter) clear() {
	select {
	case <-w.Grant:
	default:
	}
	select {
	case <-w.Next:
	default:
	}
	select {
	case <-w.Doubt:
	default:
	}
}

// Config is what an Inbox is made of.
type Config struct {
	Driver  driver.Driver
	Channel string
	// Orphan is called, from the subscription's goroutine, with a grant that
	// nobody here waits for. It must not block.
	Orphan func(Grant)
	// Broken is called, likewise, with the token of a lease that an operator broke.
	Broken func(token string)
	// Changed is called when the subscription to that channel comes up (nil) or
	// breaks, and must not block either.
	Changed func(channel string, err error)
}

// Inbox is one subscription of a client. It is opened when first needed.
type Inbox struct {
	cfg  Config
	pool sync.Pool

	mu      sync.Mutex
	waiters map[string]*Waiter
	sub     driver.Subscription
	up      bool      // confirmed, and not broken since
	broke   bool      // it was up once and broke
	opening *opening  // under way
	dropped time.Time // when Suspect last did something
	denied  error     // the server refused, so poll
	retryAt time.Time
	closed  bool
	closers sync.WaitGroup // goroutines that close a suspected subscription
}

// New makes an inbox that has not subscribed yet.
func New(cfg Config) *Inbox {
	b := &Inbox{cfg: cfg, waiters: make(map[string]*Waiter)}
	b.pool.New = func() any {
		return &Waiter{Grant: make(chan Grant, 1), Next: make(chan time.Duration, 1), Doubt: make(chan struct{}, 1)}
	}
	return b
}

// Up says whether the subscription is confirmed at this moment.
func (b *Inbox) Up() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up
}

// Join registers a waiter. It comes before the call that puts its token in the
// queue, since the grant may arrive before the reply of that call.
func (b *Inbox) Join(token string) *Waiter {
	w := b.pool.Get().(*Waiter)
	w.token = token
	b.mu.Lock()
	b.waiters[token] = w
	b.mu.Unlock()
	return w
}

// Leave ends a waiter. From then on a grant for its token is an orphan.
func (b *Inbox) Leave(w *Waiter) {
	b.mu.Lock()
	delete(b.waiters, w.token)
	b.mu.Unlock()
	// Nobody sends to w any more: who does looks it up under mu.
	w.clear()
	b.pool.Put(w)
}

// Open returns the channel that a waiter gives as its inbox: once the
// subscription is confirmed, or Poll when the server refuses it. Any other
// trouble is an error; the next call tries again.
func (b *Inbox) Open(ctx context.Context, limit time.Duration) (string, error) {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return "", errors.New("inbox closed")
	case b.sub != nil:
		// Perhaps broken at this moment: then the driver is subscribing again,
		// and the script says that nobody hears this inbox.
		b.mu.Unlock()
		return b.cfg.Channel, nil
	case b.denied != nil && time.Now().Before(b.retryAt):
		b.mu.Unlock()
		return Poll, nil
	case b.opening == nil:
		b.opening = &opening{done: make(chan struct{})}
		b.closers.Add(1)
		go b.run(ctx, limit, b.opening)
	}
	o := b.opening
	b.mu.Unlock()
	select {
	case <-o.done:
		return o.inbox, o.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// opening is one try to subscribe. All who wait for it share what came of it.
type opening struct {
	done  chan struct{}
	inbox string
	err   error
}

func (b *Inbox) run(ctx context.Context, limit time.Duration, o *opening) {
	defer b.closers.Done()
	err := b.open(ctx, limit)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		o.inbox = b.cfg.Channel
	case b.denied != nil:
		o.inbox = Poll
	default:
		o.err = err
	}
	b.opening = nil
	close(o.done)
}

func (b *Inbox) open(ctx context.Context, limit time.Duration) error {
	// A caller that goes away must not take the subscription with it that the
	// others wait for, so its cancellation is not passed on; limit bounds it.
	sub, err := b.cfg.Driver.Subscribe(context.WithoutCancel(ctx), limit, b.cfg.Channel, b.handle)
	b.mu.Lock()
	var refused *driver.ServerError
	switch {
	case err == nil && b.closed:
		b.mu.Unlock()
		_ = sub.Close()
		return errors.New("inbox closed")
	case err == nil:
		b.sub, b.denied = sub, nil
	case errors.As(err, &refused) && isDenied(refused):
		first := b.denied == nil
		b.denied, b.retryAt = err, time.Now().Add(retryDenied)
		b.mu.Unlock()
		if first {
			b.cfg.Changed(b.cfg.Channel, err)
		}
		return err
	}
	b.mu.Unlock()
	return err
}

// isDenied says whether trying again at once is of no use. A server that is
// loading, say, lets the next try pass.
func isDenied(err *driver.ServerError) bool {
	switch err.Code() {
	case "NOPERM", "ERR":
		return true
	}
	return false
}

// handle takes the events of the subscription, one at a time.
func (b *Inbox) handle(e driver.Event) {
	switch e.Kind {
	case driver.Message:
		if token, lease, ok := parseNext(e.Payload); ok {
			b.first(token, lease)
		} else if token, ok := parseBreak(e.Payload); ok {
			b.cfg.Broken(token)
		} else if g, ok := parse(e.Payload); ok && !b.deliver(g) {
			b.cfg.Orphan(g)
		}
	case driver.Subscribed:
		b.set(true)
		b.cfg.Changed(b.cfg.Channel, nil)
	case driver.Broken:
		b.set(false)
		err := e.Err
		if err == nil {
			err = errors.New("subscription ended")
		}
		b.cfg.Changed(b.cfg.Channel, err)
	}
}

// retire makes the inbox one that makes no orphans: another one of the channel may hear
// the same grant, for a waiter of its own.
func (b *Inbox) retire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// deliver hands a grant to its waiter; the newest wins, and it never blocks. It is
// false when there is none.
func (b *Inbox) deliver(g Grant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiters[g.Token]
	if w == nil {
		return b.closed
	}
	select {
	case <-w.Grant:
	default:
	}
	w.Grant <- g // has room: only deliver sends, under mu
	return true
}

// first tells a waiter that it is the first now. Who does not wait any more is
// about to leave the queue, which tells the one behind it.
func (b *Inbox) first(token string, lease time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiters[token]
	if w == nil {
		return
	}
	select {
	case <-w.Next:
	default:
	}
	w.Next <- lease // has room: only first sends, under mu
}

// set notes whether the subscription is up. A break and a return from one put all
// waiters in doubt: they may have been passed over, and may stand again.
func (b *Inbox) set(up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up = up
	if !up || b.broke {
		b.doubt()
	}
	b.broke = !up
}

// doubt makes every waiter ask the server. b.mu is held.
func (b *Inbox) doubt() {
	for _, w := range b.waiters {
		select {
		case w.Doubt <- struct{}{}:
		default:
		}
	}
}

// Suspect drops a subscription that looks alive but did not tell of a grant. All
// waiters are put in doubt; the first of them that opens the inbox again makes a
// new one.
func (b *Inbox) Suspect() {
	b.mu.Lock()
	sub := b.sub
	if sub == nil || b.closed || time.Since(b.dropped) < suspectEvery {
		b.mu.Unlock()
		return
	}
	b.dropped = time.Now()
	b.sub, b.up, b.broke = nil, false, true
	b.closers.Add(1)
	b.doubt()
	b.mu.Unlock()
	// Close waits for handle, which may be waiting for whoever called us.
	go func() {
		defer b.closers.Done()
		_ = sub.Close()
	}()
}

// Close ends the subscription and waits until nothing of it runs. Waiters are
// not told: their client does that.
func (b *Inbox) Close() {
	b.mu.Lock()
	sub := b.sub
	b.sub, b.up, b.closed = nil, false, true
	b.mu.Unlock()
	if sub != nil {
		_ = sub.Close()
	}
	b.closers.Wait()
}
