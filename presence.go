package zamok

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
)

const (
	announceEvery = 30 * time.Second
	announceSoon  = time.Second // the least time between two
	mostReasons   = 1000
)

// presence is what a client says of itself under P + "zamok:proc:" + id, so that
// the token in a lock leads to a service and a reason, and no acquire has to
// carry them. It is written off the hot path: when the first lease is taken, when
// a reason comes or goes (at most once a second), and every 30 s while anything
// is held. It is advice: nothing depends on it.
//
// Its fields are guarded by keeper.mu.
type presence struct {
	timer   *time.Timer
	due     instant // when the timer fires; never when it is not set
	written instant
	known   bool // the key was written, so Close deletes it
	reasons int  // leases with a reason
}

// leaseChanged notes that a lease came or went. mu is held.
func (k *keeper) leaseChanged(l *Lease, n int) {
	p := &k.presence
	hasReason := l.spec.reason != ""
	if hasReason {
		p.reasons += n
	}
	switch {
	case k.closed:
	case n > 0 && !p.known:
		p.known = true
		k.announceAt(k.client.clock.now())
	case hasReason:
		k.announceAt(max(k.client.clock.now(), p.written.add(announceSoon)))
	case n > 0 && p.due == never:
		k.announceAt(max(k.client.clock.now(), p.written.add(announceEvery)))
	}
}

// announceAt sets the timer, unless it fires before. mu is held.
func (k *keeper) announceAt(at instant) {
	p := &k.presence
	if p.timer != nil && p.due <= at {
		return
	}
	p.due = at
	wait := max(at.sub(k.client.clock.now()), 0)
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, k.announce)
	} else {
		p.timer.Reset(wait)
	}
}

// announce writes the key, and plans the next time while anything is held.
func (k *keeper) announce() {
	c := k.client
	if !c.enter() {
		return
	}
	defer c.leave()
	k.mu.Lock()
	now := c.clock.now()
	k.presence.written, k.presence.due = now, never
	ttl := 3 * announceEvery
	self := proc.Record{Service: c.cfg.Name, Host: hostname(), PID: os.Getpid()}
	if k.presence.reasons > 0 {
		self.Reasons = make(map[string]string)
	}
	for token, l := range k.tokens {
		ttl = max(ttl, l.spec.ttl+announceEvery)
		if l.spec.reason != "" && len(self.Reasons) < mostReasons {
			self.Reasons[token] = l.spec.reason
		}
	}
	if len(k.tokens) > 0 {
		k.announceAt(now.add(announceEvery))
	}
	k.mu.Unlock()
	if _, err := c.d.Eval(c.backgroundCtx, c.announcement(self.Text(), ttl)); err != nil {
		c.cfg.Logger.Debug("zamok: could not say who this is", "err", err)
	}
}

// depart deletes the key.
func (c *Client) depart() {
	if c.keeper.presence.known {
		_, _ = c.d.Eval(c.backgroundCtx, c.announcement("", 0)) // its TTL does it otherwise
	}
}

func (c *Client) announcement(text string, ttl time.Duration) driver.Call {
	return driver.Call{
		Script: lua.Announce,
		Keys:   []string{keys.Proc(c.cfg.Prefix, c.id)},
		Args:   []string{text, strconv.FormatInt(ceilMS(ttl), 10)},
		Limit:  time.Second,
	}
}

// identity is what was last read about a holder: one who is asked for again and
// again is looked up once.
type identity struct {
	token, service, reason string

	// early: it was asked for when the lock had just been taken, and the reason,
	// which is written up to a second later, may have been missing.
	early bool
}

// identify adds to e what the holder says of itself.
func (c *Client) identify(ctx context.Context, e *HeldError) {
	if e.Holder.Client == "" {
		return
	}
	seen := c.seen.Load()
	early := e.Since < 2*announceSoon
	if seen == nil || seen.token != e.Holder.Token || seen.early && !early {
		reply, err := c.d.Eval(ctx, driver.Call{
			Script: lua.Whois,
			Keys:   []string{keys.Proc(c.cfg.Prefix, e.Holder.Client)},
			Limit:  diagnosis,
		})
		text, _ := reply.(string)
		p, ok := proc.Parse(text)
		if err != nil || !ok {
			return
		}
		seen = &identity{token: e.Holder.Token, service: p.Service, reason: p.Reasons[e.Holder.Token], early: early}
		c.seen.Store(seen)
	}
	e.Service, e.Reason = seen.service, seen.reason
}
