package zamok

import (
	"container/heap"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// keeper renews the leases of a client and ends them in time. It has no
// goroutine of its own: one timer for the earliest of what is due, and for every
// batch of renewals a goroutine that ends with it.
//
// The timer's function never talks to the server, so a lease ends on time
// whatever any call is doing.
type keeper struct {
	client *Client

	mu     sync.Mutex // also of the leases' own state
	heap   dueHeap
	tokens map[string]*Lease
	given  map[string]gift     // by token, leases that were given away
	ending map[string]struct{} // tokens whose release is on its way
	timer  *time.Timer
	armed  instant // when timer fires; never when it is not set
	closed bool

	lines      map[string]*line // by lock key
	idle       sync.Pool        // of *line
	ears       sync.Pool        // of chan news: of one who waits in a line
	blocksFrom instant          // when to ask for the next block of fences

	crowded int // how many of given are a reason to look which are over

	early map[string]struct{} // tokens whose break was told before there was a lease

	presence presence
}

func (k *keeper) init(c *Client) {
	k.client, k.tokens, k.given, k.lines = c, make(map[string]*Lease), make(map[string]gift), make(map[string]*line)
	k.ending = make(map[string]struct{})
	k.armed, k.presence.due = never, never
}

// batchSize bounds one pipeline of renewals.
const batchSize = 256

// renewEarly: when one lease is renewed, so are those whose turn comes within this
// part of their time. Of many leases each would otherwise be a request of its own.
const renewEarly = 128

// longestRenewal is the longest time between two renewals: also a lease of a day
// is to learn within minutes that it was broken or deleted.
const longestRenewal = 5 * time.Minute

// renewAfter is when, after a grant, the next renewal is due: a third of what was
// granted, spread so that leases taken together are not renewed together.
func renewAfter(granted time.Duration) time.Duration {
	third := min(granted/3, longestRenewal)
	return third - rand.N(third/10+1)
}

// stopAt is when the lease's context must end. Until its first renewal a lease
// that was handed over has at most 2 s, of which a Grace made for the whole TTL
// must not take too much. The keeper's mu is held.
func (l *Lease) stopAt() instant {
	grace := l.spec.grace
	if l.granted < l.spec.ttl {
		grace = min(grace, l.granted/4)
	}
	return l.end().add(-grace)
}

func (k *keeper) add(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens[l.token] = l
	k.leaseChanged(1)
	if _, broken := k.early[l.token]; broken {
		delete(k.early, l.token)
		l.renewAt = k.client.clock.now()
	}
	l.due = min(l.renewAt, l.stopAt())
	heap.Push(&k.heap, l)
	k.arm()
}

// remove takes a lease out for good. mu is held.
func (k *keeper) remove(l *Lease) {
	if k.tokens[l.token] == l {
		delete(k.tokens, l.token)
		k.leaseChanged(-1)
	}
	if l.at >= 0 {
		heap.Remove(&k.heap, int(l.at))
	}
	if ln := l.line; ln != nil {
		l.line, ln.lease = nil, nil
		k.look(ln)
	}
}

// reschedule puts a lease where its times say. mu is held.
func (k *keeper) reschedule(l *Lease) {
	due := min(l.renewAt, l.stopAt())
	if l.state == lost {
		due = l.end()
	}
	l.due = due
	if l.at >= 0 {
		heap.Fix(&k.heap, int(l.at))
	} else {
		heap.Push(&k.heap, l)
	}
	k.arm()
}

// holds reports whether a message that gives the token the lock is late, and no orphan: a
// call has told of the grant before. To give that back would be a second release, and one
// of the two would find what another has.
func (k *keeper) holds(token string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, given := k.given[token]
	_, ending := k.ending[token]
	return given || ending || k.tokens[token] != nil
}

// ended notes that the release of a lease has come to an end.
func (k *keeper) ended(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ending, l.token)
}

// lease returns the lease of that token, nil when this client has none.
func (k *keeper) lease(token string) *Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tokens[token]
}

// arm sets the timer to the earliest due time, if it is not set to that or
// something earlier. A timer that fires early finds nothing and arms again. mu
// is held.
func (k *keeper) arm() {
	if len(k.heap) == 0 || k.closed || k.heap[0].due >= k.armed {
		return
	}
	k.armed = k.heap[0].due
	wait := k.client.clock.until(k.armed)
	if k.timer == nil {
		k.timer = time.AfterFunc(wait, k.tick)
	} else {
		k.timer.Reset(wait)
	}
}

// close stops the timer and returns the leases that were held, which are lost
// to their holders from now on.
func (k *keeper) close() []*Lease {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.presence.timer != nil {
		k.presence.timer.Stop()
	}
	for _, ln := range k.lines {
		ln.shut()
	}
	var leases []*Lease
	var ended []*Lease
	for _, l := range k.tokens {
		leases = append(leases, l)
		l.at = -1
		if l.state == held {
			l.lose(&LostError{Reason: LostClosed})
			ended = append(ended, l)
		}
	}
	clear(k.tokens)
	k.heap = nil
	k.mu.Unlock()
	tellAll(ended)
	return leases
}

// tick does what is due.
func (k *keeper) tick() {
	if !k.client.enter() {
		return
	}
	defer k.client.leave()
	k.mu.Lock()
	k.armed = never
	now := k.client.clock.now()
	var renew []renewing
	var ended, over []*Lease
	for len(k.heap) > 0 {
		l := k.heap[0]
		if l.due > now && (len(renew) == 0 || !l.renewsBy(now.add(l.span()/renewEarly))) {
			break
		}
		switch {
		case l.state == held && l.abandoned():
			// The context that it was taken under has ended, so its holder is
			// gone or going. It may still release until the lease is over.
			l.renewAt, l.due = never, l.end()
			heap.Fix(&k.heap, 0)
			if now >= l.end() {
				k.remove(l)
			}
		case l.state == lost:
			k.remove(l)
			over = append(over, l)
		case now >= l.stopAt():
			_ = l.lapse()
			ended = append(ended, l)
		default:
			l.renewAt = never
			l.due = l.stopAt()
			heap.Fix(&k.heap, 0)
			renew = append(renew, renewing{l, renewLimit(l.span())})
		}
	}
	k.arm()
	k.mu.Unlock()
	k.renew(renew)
	k.client.giveUp(over)
	tellAll(ended)
}

// renewsBy says whether a renewal is due until then. mu is held.
func (l *Lease) renewsBy(at instant) bool { return l.state == held && l.renewAt <= at }

// span is the time within which the next renewal must succeed. mu is held.
func (l *Lease) span() time.Duration { return min(l.granted, l.spec.ttl) }

// renewing is a lease whose renewal is under way, which lasts so long at most.
type renewing struct {
	*Lease
	limit time.Duration
}

// renew sends the renewals, in batches of leases with similar limits: a call of
// EvalAll lasts as long as the slowest of its calls.
func (k *keeper) renew(all []renewing) {
	classes := make(map[int][]renewing)
	for _, r := range all {
		class := bits.Len64(uint64(r.limit / minTTL))
		classes[class] = append(classes[class], r)
		if len(classes[class]) == batchSize {
			k.send(classes[class])
			delete(classes, class)
		}
	}
	for _, batch := range classes {
		k.send(batch)
	}
}

func (k *keeper) send(batch []renewing) {
	c := k.client
	c.background.Go(func() {
		sent := c.clock.now()
		calls := make([]driver.Call, len(batch))
		for i, r := range batch {
			args := []string{r.token, r.spec.ttlMS}
			calls[i] = r.as().renewCall(args, r.limit)
		}
		var broken, gone []*Lease
		var why []answer
		for i, r := range c.d.EvalAll(c.backgroundCtx, calls) {
			l := batch[i].Lease
			ans, err := aboutLease(answerOf(r))
			switch {
			case err != nil:
				l.renewalFailed(err)
			case l.outrun(ans):
				l.renewSoon()
				continue
			case ans.status == "renewed":
				err = l.renewed(sent, ans, true)
			case ans.status == "broken":
				if l.broken(ans.holder) {
					broken = append(broken, l)
				}
				continue
			default:
				gone, why = append(gone, l), append(why, ans)
				continue
			}
			if f := c.cfg.Trace.Renewed; f != nil && l.Err() == nil {
				f(RenewedInfo{Name: l.Name(), Took: c.clock.now().sub(sent), Left: time.Until(l.Deadline()), Err: err})
			}
		}
		tellAll(broken)
		c.gone(c.backgroundCtx, gone, why)
	})
}

// renewalFailed plans the next try.
func (l *Lease) renewalFailed(err error) {
	k := &l.client.keeper
	k.mu.Lock()
	if l.state != held || l.at < 0 {
		k.mu.Unlock()
		return
	}
	first := l.renewal == nil
	l.renewal = err
	pause := min(l.span()/20, 500*time.Millisecond)
	l.renewAt = l.client.clock.now().add(jitter(pause))
	k.reschedule(l)
	k.mu.Unlock()
	if first { // not under mu: a logger may block, and leases must end on time
		l.client.cfg.Logger.Warn("zamok: renewal failed; trying on", "lock", l.Name(), "err", err)
	}
}

// renewed takes the answer to a renewal that was sent at that instant: by the
// keeper, or by the holder, which changes nothing of the keeper's plan. It
// returns nil, or why the lease was over already.
func (l *Lease) renewed(sent instant, ans answer, own bool) error {
	c := l.client
	k := &c.keeper
	works := false
	defer func() {
		if works {
			c.cfg.Logger.Info("zamok: renewal works again", "lock", l.Name())
		}
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := l.err(); err != nil {
		return err
	}
	if ans.pttl > 0 { // otherwise somebody took its TTL off; the next renewal puts one on
		left := c.cfg.believed(ans.pttl)
		if until := sent.add(left - margin(left)); until > l.kept {
			l.keep(until, left)
		}
	}
	if own {
		l.renewAt = sent.add(renewAfter(l.spec.ttl))
		if l.again {
			l.renewAt, l.again = c.clock.now(), false
		}
		works, l.renewal = l.renewal != nil, nil
	}
	if l.at >= 0 {
		k.reschedule(l)
	}
	return nil
}

// drop forgets a lease that nobody was told of.
func (l *Lease) drop() {
	k := &l.client.keeper
	k.mu.Lock()
	k.remove(l)
	l.state = released
	k.mu.Unlock()
	l.endContext(ErrReleased)
}

// dueHeap orders leases by their due times.
type dueHeap []*Lease

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = int32(i), int32(j)
}

func (h *dueHeap) Push(x any) {
	l := x.(*Lease)
	l.at = int32(len(*h))
	*h = append(*h, l)
}

func (h *dueHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.at = -1
	return l
}
