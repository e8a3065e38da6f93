package zamok

import (
	"context"
	"slices"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/wake"
)

// abandonPauses are the waits before an abandon is sent again when the server
// knew nothing of the token: a delayed acquire may come behind it.
var abandonPauses = [...]time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond}

// abandonFailures is how many calls of an abandon may fail: with the pauses
// between them about ten seconds, after which the TTL must do.
const abandonFailures = 8

// doubt is what may still come of the requests that were made for a token.
type doubt int

const (
	settled doubt = iota // nothing: each was answered
	unsure               // one was not: as soon as the token has something, it has run
	tangled              // one was not, and what the token has may be of another
)

// abandon gives up, behind the caller's back, whatever the token may have: the
// lock, or the place in the queue that member names. In a pipeline that its caller has
// left, an acquire may be sent again until that is over, also when what it brought was
// given back. The caller has entered the client.
func (c *Client) abandon(s *spec, token, member, rest string, d doubt) {
	pipeline := c.bundle.over(token)
	c.background.Go(func() {
		call := s.releaseCall([]string{token, member, rest}, callLimit)
		for failures, again := 0, 0; ; {
			a, err := c.eval(c.backgroundCtx, call)
			var pause time.Duration
			switch {
			case err != nil && (refusal(s.keys.Name, err) != nil || failures == abandonFailures):
				return
			case err != nil:
				d = max(d, unsure)
				pause = 50 * time.Millisecond << min(failures, 5)
				failures++
			case pipeline != nil:
				select {
				case <-pipeline:
				case <-c.backgroundCtx.Done():
					return
				}
				pipeline = nil
				continue
			case d < tangled && (a.status == "released" || a.status == "handed" || a.place > 0):
				return // the acquire had run, and is undone
			case d == settled, again == len(abandonPauses):
				return
			default:
				pause = abandonPauses[again]
				again++
			}
			if !sleep(c.backgroundCtx, pause) {
				return
			}
		}
	})
}

// giveUp gives back leases that were lost by the clock alone, in batches: a server
// that was silent for long has let all of them end, and as many calls at once, each
// of them tried again, would keep it from whoever comes next.
func (c *Client) giveUp(leases []*Lease) {
	for batch := range slices.Chunk(leases, batchSize) {
		c.background.Go(func() {
			for failures := 0; ; failures++ {
				calls := make([]driver.Call, len(batch))
				for i, l := range batch {
					calls[i] = l.releaseCall(nil, callLimit)
				}
				var left []*Lease
				for i, r := range c.d.EvalAll(c.backgroundCtx, calls) {
					if r.Err != nil && refusal(batch[i].Name(), r.Err) == nil {
						left = append(left, batch[i])
					}
				}
				batch = left
				if len(batch) == 0 || failures == abandonFailures || !sleep(c.backgroundCtx, 50*time.Millisecond<<min(failures, 5)) {
					return
				}
			}
		})
	}
}

// orphan gives back what was granted to a call that has ended: its entry in the
// queue had come behind its own abandon.
func (c *Client) orphan(g wake.Grant) {
	if c.keeper.holds(g.Token) {
		return // a poll had already told of it
	}
	set, err := keys.ForKey(c.cfg.Prefix, "orphan", g.Lock)
	if err != nil || !c.enter() {
		return
	}
	defer c.leave()
	s := &spec{keys: set} // a writer, or a reader, which is the same here
	s.setQuarantine(&c.cfg)
	if keys.IsSemaphore(c.cfg.Prefix, g.Lock) {
		s.kind, s.permits = permit, "0" // nobody knows here how many: the next one asks for it within 2 s
	}
	c.abandon(s, g.Token, "", "0", settled)
}

// sleep waits, and returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
