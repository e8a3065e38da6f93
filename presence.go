package zamok

import (
	"cmp"
	"context"
	"hash/maphash"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
)

const (
	announceEvery = 30 * time.Second
	announceSoon  = time.Second // the least time between two, for each thousand that they name
	announceEach  = 1000
	announceRetry = 5 * time.Second   // after one that failed
	shortestList  = 3 * announceEvery // the least TTL of what is announced

	// lateGrant is how long after a lease was given away a message of its hand-over
	// may come. A subscription that does not answer a PING breaks within 20 s; the
	// rest is for a process that was stopped.
	lateGrant = time.Hour

	// listenAbove is the TTL from which a client that holds listens to its inbox,
	// so that one whose lease an operator breaks need not wait for its next renewal.
	listenAbove = 30 * time.Second
)

// presence is what a client says of itself under P + "zamok:proc:{all}:" + id, so
// that the token in a lock leads to a service and a reason, what is held can be
// listed without a walk over the keys, and no acquire has to carry any of it. It is
// written off the hot path: when the first lease is taken, when something changed
// (at most once a second), and every 30 s while anything is held or waited for. It
// is advice: nothing depends on it.
//
// Its fields are guarded by keeper.mu.
type presence struct {
	timer   *time.Timer
	due     instant // when the timer fires; never when it is not set
	looked  instant // when it fired last, whether there was news or not
	told    bool    // anything was announced, at written, so Close deletes the key
	written instant
	named   int    // how many the last announcement named
	text    uint64 // the hash of what it said; 0 when it failed
	known   bool   // there was something to announce
	waits   map[string]*waiting
}

// waiting is one who stands in a queue.
type waiting struct {
	spec    *spec
	began   instant
	under   []string
	attempt *attempt // for those who wait behind it
}

// gift is a lease that this client gave away, or extended for another, or left at
// rest, and which is listed until it ends.
type gift struct {
	lease proc.Lease
	rests bool
	ends  instant
	until instant // from then on no message of its hand-over can come
}

// under returns the tokens of the leases under which ctx runs, the innermost first.
func (c *Client) under(ctx context.Context) []string {
	var tokens []string
	for l := LeaseFrom(ctx); l != nil; l = LeaseFrom(l.under) {
		if l.Err() == nil { // the token of one that was passed on is another's
			tokens = append(tokens, l.token)
		}
	}
	if c.cfg.Under != "" {
		tokens = append(tokens, c.cfg.Under)
	}
	return tokens
}

// leaseChanged notes that a lease came or went. mu is held.
func (k *keeper) leaseChanged(n int) {
	p := &k.presence
	if n > 0 && !p.known && !k.closed {
		p.known = true
		k.announceAt(k.client.clock.now())
		return
	}
	k.changed()
}

// changed notes that something is to be told. mu is held.
func (k *keeper) changed() {
	p := &k.presence
	if k.closed {
		return
	}
	p.known = true
	pause := min(announceSoon*time.Duration(1+p.named/announceEach), announceEvery)
	if p.due <= p.looked.add(pause) || !p.told && p.due != never {
		return // it will be, as soon as it may; most changes end here, without a look at the clock
	}
	now := k.client.clock.now()
	if !p.told {
		now = now.add(pause) // a wait that is over within a second is not worth it
	}
	k.announceAt(max(now, p.looked.add(pause)))
}

// waits notes that a call stands in a queue; nil, that it does no more.
func (k *keeper) waits(token string, w *waiting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w == nil {
		delete(k.presence.waits, token)
	} else {
		if k.presence.waits == nil {
			k.presence.waits = make(map[string]*waiting)
		}
		k.presence.waits[token] = w
	}
	k.changed()
}

// give notes a lease that is nobody's of this client, and what may still be heard
// of it. mu is held.
func (k *keeper) give(g gift) {
	k.forget()
	token := g.lease.Token
	g.lease.Token = proc.Short(k.client.tokenStart(), token)
	g.lease.Given, g.until = !g.rests, max(g.until, k.given[token].until)
	k.given[token] = g
	k.changed()
}

// rests notes that a lock stays taken for a while after its release.
func (k *keeper) rests(l *Lease, left time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.give(gift{lease: l.spec.named(restMark + l.token[len(tokenMark):]), rests: true, ends: k.client.clock.now().add(left)})
}

// forget drops the gifts of which nothing is to be told or heard any more, whenever
// there are twice as many as it left the last time: each costs two looks on average,
// however many there are. mu is held.
func (k *keeper) forget() {
	if len(k.given) < k.crowded {
		return
	}
	now := k.client.clock.now()
	for token, g := range k.given {
		if g.ends < now && g.until < now {
			delete(k.given, token)
		}
	}
	k.crowded = max(64, 2*len(k.given))
}

// takeBack notes that a lease that was given away has ended.
func (k *keeper) takeBack(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if g, ok := k.given[token]; ok {
		g.ends = 0
		k.given[token] = g
		k.changed()
	}
}

// announceAt sets the timer, unless it fires before. mu is held.
func (k *keeper) announceAt(at instant) {
	p := &k.presence
	if p.timer != nil && p.due <= at {
		return
	}
	p.due = at
	wait := k.client.clock.until(at)
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, k.announce)
	} else {
		p.timer.Reset(wait)
	}
}

// announce writes the key if there is news, and plans the next time while anything
// is held or waited for.
func (k *keeper) announce() {
	c := k.client
	if !c.enter() {
		return
	}
	defer c.leave()
	k.mu.Lock()
	p := &k.presence
	now := c.clock.now()
	due := !p.told || now.sub(p.written) >= announceEvery
	p.due, p.looked = never, now
	k.mu.Unlock()

	self := k.describe(false)
	news := self.hash()
	self.UpMS = time.Duration(now).Milliseconds()
	holds := self.Holding+self.Waiting > 0

	k.mu.Lock()
	skip := news == p.text && !due || !holds && !p.told
	if !skip {
		p.told, p.written, p.text, p.named = true, now, news, len(self.Held)+len(self.Waits)
	}
	if holds {
		k.announceAt(p.written.add(announceEvery))
	}
	k.mu.Unlock()
	if skip {
		return
	}
	if _, err := c.d.Eval(c.backgroundCtx, c.announcement(self.Text(), self.ttl, time.Second)); err != nil {
		c.cfg.Logger.Debug("zamok: could not say who this is", "err", err)
		k.unheard(err)
	}
	if self.listen {
		_, _ = c.inbox.Open(c.backgroundCtx, time.Second) // tried again next time
	}
}

// unheard plans to say again what the server did not take.
func (k *keeper) unheard(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.presence.text = 0
	if !k.closed && refusal("", err) == nil {
		k.announceAt(k.client.clock.now().add(announceRetry))
	}
}

// account is what there is to say, and for how long it holds.
type account struct {
	proc.Record
	ttl    time.Duration
	ends   instant // of what was given away; it is for this that the key must stay
	listen bool    // this client should listen for operators
}

var seed = maphash.MakeSeed()

// hash tells whether there is news: what passes by itself is none.
func (a *account) hash() uint64 {
	r := a.Record
	r.TTLMS = 0
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(r.Text())
	maphash.WriteComparable(&h, a.ends)
	return h.Sum64()
}

// describe returns what there is to say. left: only what was given away counts.
func (k *keeper) describe(left bool) *account {
	c := k.client
	k.mu.Lock()
	now := c.clock.now()
	held := make([]*Lease, 0, len(k.tokens))
	waits := make(map[string]waiting, len(k.presence.waits))
	behind := make(map[string][]*Lease)
	var given []proc.Lease
	a := &account{ttl: shortestList}
	if left {
		a.ttl = 0
	} else {
		for _, l := range k.tokens {
			held = append(held, l)
		}
		for token, w := range k.presence.waits {
			waits[token] = *w
			behind[token] = w.attempt.behind()
		}
	}
	for _, g := range k.given {
		if g.ends > now {
			given = append(given, g.lease)
			a.ends = max(a.ends, g.ends)
			a.ttl = max(a.ttl, g.ends.sub(now)+announceEvery)
		}
	}
	k.mu.Unlock()

	// Without mu: what is read of leases here never changes.
	for token, leases := range behind {
		w := waits[token]
		w.under = c.alsoUnder(w.under, leases)
		waits[token] = w
	}
	for _, l := range held {
		a.ttl = max(a.ttl, l.spec.ttl+announceEvery)
		a.listen = a.listen || l.spec.ttl > listenAbove
	}
	a.Record = proc.Record{
		Service: c.cfg.Name, Version: c.cfg.Version, Command: c.cfg.Command, Host: hostname(), PID: os.Getpid(),
		Left: left, Holding: len(held) + len(given), Waiting: len(waits), TTLMS: a.ttl.Milliseconds(),
		Held: c.nameHeld(held, given), Waits: c.nameWaits(waits),
	}
	return a
}

// nameHeld names the leases, the longest held first.
func (c *Client) nameHeld(held []*Lease, given []proc.Lease) []proc.Lease {
	slices.SortFunc(held, func(a, b *Lease) int {
		return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.token, b.token))
	})
	slices.SortFunc(given, func(a, b proc.Lease) int { return cmp.Compare(a.Token, b.Token) })
	start := c.tokenStart()
	list := make([]proc.Lease, 0, min(len(held), proc.Most)+len(given))
	for _, l := range held[:min(len(held), proc.Most)] {
		n := l.named()
		n.Token = proc.Short(start, n.Token)
		list = append(list, n)
	}
	return append(list, given[:min(len(given), proc.Most)]...)
}

// nameWaits names those who wait, the longest waiting first.
func (c *Client) nameWaits(waits map[string]waiting) []proc.Wait {
	start := c.tokenStart()
	list := make([]proc.Wait, 0, len(waits))
	tokens := make([]string, 0, len(waits))
	for token := range waits {
		tokens = append(tokens, token)
	}
	slices.SortFunc(tokens, func(a, b string) int {
		return cmp.Or(cmp.Compare(waits[a].began, waits[b].began), cmp.Compare(a, b))
	})
	for _, token := range tokens[:min(len(tokens), proc.Most)] {
		w := waits[token]
		named := w.spec.named(token)
		list = append(list, proc.Wait{Name: named.Name, Key: named.Key, Token: proc.Short(start, token), Under: w.under, Permits: named.Permits})
	}
	return list
}

// named is how a lease of this lock stands in what a client says of itself, with
// its whole token.
func (s *spec) named(token string) proc.Lease {
	n := proc.Lease{Name: proc.Bytes(s.keys.Name), Token: token, TTLMS: ceilMS(s.ttl), Reason: s.reason}
	if s.ownKey || s.kind == permit {
		n.Key = proc.Bytes(s.keys.Lock)
	}
	if s.kind == permit {
		n.Permits, _ = strconv.Atoi(s.permits)
	}
	return n
}

func (l *Lease) named() proc.Lease {
	n := l.spec.named(l.token)
	if l.as().shared() {
		n.Fence = l.fence
	}
	return n
}

// tokenStart is what all tokens of this client begin with.
func (c *Client) tokenStart() string { return tokenMark + c.id + "/" }

// depart deletes the key, or leaves there what was given away.
func (c *Client) depart(limit time.Duration) {
	self := c.keeper.describe(true)
	switch {
	case len(self.Held) > 0:
		_, _ = c.d.Eval(c.backgroundCtx, c.announcement(self.Text(), self.ttl, limit))
	case c.keeper.presence.told:
		_, _ = c.d.Eval(c.backgroundCtx, c.announcement("", 0, limit)) // its TTL does it otherwise
	}
}

func (c *Client) announcement(text string, ttl, limit time.Duration) driver.Call {
	return driver.Call{
		Script: lua.Announce,
		Keys:   []string{keys.Procs(c.cfg.Prefix), keys.Proc(c.cfg.Prefix, c.id)},
		Args:   []string{c.id, text, strconv.FormatInt(ceilMS(ttl), 10)},
		Limit:  limit,
	}
}
