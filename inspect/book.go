package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/internal/token"
)

// A client says at least every 30 s that it is there, while anything is held or
// waits. One and a half times that, and 5 s for a slow server, is too long.
const silentAfter = 50 * time.Second

// renewedLately: a lease that was raised to its TTL less than this ago has a
// holder who lives, whatever became of its presence. It is less than the least
// time from the death of a process to its silence: silentAfter less 30 s.
const renewedLately = 20 * time.Second

// mostIDs is of how many processes Show asks who they are, beside the first.
const mostIDs = 256

// record is what one client says of itself.
type record struct {
	proc.Record
	id     string
	start  string        // of its tokens
	seen   time.Duration // since it was written; 0 when not known
	silent bool
}

// tokenKey is a token in two, so that a short one need not be made whole to be
// looked up.
type tokenKey struct{ start, rest string }

// keyOf reads a token as it stands in the record of the client whose tokens begin
// with start: one with slashes is another client's, and whole.
func keyOf(start, text string) tokenKey {
	if at := strings.LastIndexByte(text, '/'); at >= 0 {
		return tokenKey{text[:at+1], text[at+1:]}
	}
	return tokenKey{start, text}
}

// claim is a lease that a process says it has.
type claim struct {
	by    *record
	lease *proc.Lease
}

// book has what some processes say of themselves, in order to look it up.
type book struct {
	records map[string]*record // by client; nil: it was asked for and there is none
	leases  map[tokenKey]claim
	waits   map[tokenKey]*proc.Wait

	older *book // says what this one does not; it is not changed. May be nil
}

func newBook(older *book) *book {
	return &book{records: map[string]*record{}, leases: map[tokenKey]claim{}, waits: map[tokenKey]*proc.Wait{}, older: older}
}

// record returns what the client says. asked: there is no need to ask for it.
func (b *book) record(id string) (r *record, asked bool) {
	for ; b != nil && !asked; b = b.older {
		r, asked = b.records[id]
	}
	return r, asked
}

func (b *book) claim(token string) (c claim, ok bool) {
	for ; b != nil && !ok; b = b.older {
		c, ok = b.leases[keyOf("", token)]
	}
	return c, ok
}

func (b *book) wait(token string) (w *proc.Wait) {
	for ; b != nil && w == nil; b = b.older {
		w = b.waits[keyOf("", token)]
	}
	return w
}

// read takes in the text of a client, or notes that there is none. It returns nil
// for a text that is not one of ours.
func (b *book) read(id, text string) *record {
	p, ok := proc.Parse(text)
	if !ok {
		b.records[id] = nil
		return nil
	}
	r := &record{Record: p, id: id, start: token.Mark + id + "/"}
	b.records[id] = r
	for n := range r.Held {
		key := keyOf(r.start, r.Held[n].Token)
		// Two may name one lease: who detached it, and who extended it then. What
		// its own client says counts.
		if _, taken := b.leases[key]; !taken || key.start == r.start {
			b.leases[key] = claim{by: r, lease: &r.Held[n]}
		}
	}
	for n := range r.Waits {
		b.waits[keyOf(r.start, r.Waits[n].Token)] = &r.Waits[n]
	}
	return r
}

// heard notes when the record's text ends, from which and from its TTL follows
// when it was written.
func (r *record) heard(left time.Duration) {
	if r.TTLMS > 0 {
		r.seen = max(0, millis(r.TTLMS)-left)
		r.silent = !r.Left && r.Holding+r.Waiting > 0 && r.seen > silentAfter // one that has nothing need not speak
	}
}

// up is how long the client has been there, as far as it can be known.
func (r *record) up() time.Duration {
	up := millis(r.UpMS)
	if !r.silent && !r.Left {
		up += r.seen
	}
	return up
}

// fill adds to a lock what the processes say of its holders and its waiters. It may be
// called again when more is known.
func (b *book) fill(l *Lock) {
	for n := range l.Holders {
		b.fillHolder(l, &l.Holders[n])
	}
	l.settle()
	for n := range l.Waiters {
		w := &l.Waiters[n]
		if r, _ := b.record(w.Holder.Client); r != nil {
			w.Service, w.Command = r.Service, r.Command
		}
		if wait := b.wait(w.Holder.Token); wait != nil {
			w.Under = wait.Under
			l.says(wait.Permits)
		}
	}
}

func (b *book) fillHolder(l *Lock, h *Holder) {
	r, _ := b.record(h.Client)
	if r != nil {
		h.Service, h.Version, h.Command, h.Up = r.Service, r.Version, r.Command, r.up()
	}
	// One at rest has the token of the lease before, but for the mark.
	text := h.Token
	if h.Resting {
		text = token.Mark + strings.TrimPrefix(text, token.RestMark)
	}
	if c, ok := b.claim(text); ok && !h.Foreign {
		l.claimed = string(c.lease.Name)
		l.says(c.lease.Permits)
		h.Reason, h.TTL, h.Detached = c.lease.Reason, millis(c.lease.TTLMS), c.lease.Given
		if h.Fence == 0 { // of one of several, the server does not know it
			h.Fence = max(0, c.lease.Fence)
			h.Since = since(h.Fence, l.now)
		}
		h.Late = late(h, l.NoTTL)
	}
	h.Silent = r != nil && r.silent && !h.Detached && !h.Resting && !h.fresh(l.NoTTL)
	if r != nil && !r.silent && !r.Left && !h.Detached {
		h.Up = max(h.Up, h.Since) // it said so up to 30 s ago; when it took the lock may be news
	}
}

// says notes how many permits a process says that a semaphore has.
func (l *Lock) says(permits int) {
	if permits <= 0 {
		return
	}
	if l.fewest == 0 || permits < l.fewest {
		l.fewest = permits
	}
	if !l.Fixed {
		l.Permits = max(l.Permits, permits)
	}
}

// fresh says whether the lease was renewed lately. One that was extended beyond
// its TTL says nothing of that.
func (h *Holder) fresh(noTTL bool) bool {
	return h.TTL > 0 && !noTTL && h.Left <= h.TTL && h.TTL-h.Left <= renewedLately
}

// late is how long the next renewal is overdue. Renewals come at a third of what
// was granted, and every 5 minutes; that the first third of a new lease that was handed over is one of
// 2 s does not make it later than the lease is old. What an operator broke is not
// raised, so nothing can be said of it.
func late(h *Holder, noTTL bool) time.Duration {
	const slack = time.Second
	if h.TTL <= 0 || h.Detached || noTTL || h.Broken != nil || h.Resting || h.Since <= time.Second {
		return 0
	}
	due := min(h.TTL/3, 5*time.Minute)
	overdue := h.TTL - h.Left - due - max(slack, due/3)
	return max(0, min(overdue, h.Since))
}

// identify asks who the lock's holders and its waiters are.
func (i *Inspector) identify(ctx context.Context, l *Lock) {
	b := newBook(nil)
	i.whois(ctx, b, clients(l))
	b.fill(l) // for their TTLs
	var unsure []*record
	for n := range l.Holders {
		h := &l.Holders[n]
		if r, _ := b.record(h.Client); r != nil && !h.fresh(l.NoTTL) && !h.Detached {
			unsure = append(unsure, r)
		}
	}
	if len(unsure) > 0 {
		i.heardOf(ctx, unsure)
		b.fill(l)
	}
}

// clients are the holders' and the first waiters' ids, each once.
func clients(l *Lock) []string {
	var ids []string
	known := map[string]bool{"": true}
	add := func(id string) {
		if !known[id] && len(ids) <= mostIDs {
			known[id] = true
			ids = append(ids, id)
		}
	}
	for _, h := range l.Holders {
		add(h.Client)
	}
	for _, w := range l.Waiters {
		add(w.Holder.Client)
	}
	return ids
}

// whois reads into the book what these clients say of themselves. What cannot be
// had is left out.
func (i *Inspector) whois(ctx context.Context, b *book, ids []string) {
	if len(ids) == 0 {
		return
	}
	for n, result := range i.d.EvalAll(ctx, i.whoisCalls(ids)) {
		text, _ := result.Reply.(string)
		b.read(ids[n], text)
	}
}

func (i *Inspector) whoisCalls(ids []string) []driver.Call {
	calls := make([]driver.Call, len(ids))
	for n, id := range ids {
		calls[n] = driver.Call{Script: lua.Whois, Keys: []string{keys.Proc(i.prefix, id)}, Limit: limit}
	}
	return calls
}

// heardOf asks when these clients last spoke.
func (i *Inspector) heardOf(ctx context.Context, records []*record) {
	now, all, err := i.roster(ctx)
	if err != nil {
		return
	}
	ends := make(map[string]int64, len(all))
	for _, c := range all {
		ends[c.id] = c.expiry
	}
	for _, r := range records {
		if expiry, ok := ends[r.id]; ok {
			r.heard(millis(expiry - now))
		}
	}
}
