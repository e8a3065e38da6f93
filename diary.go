package zamok

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/internal/token"
)

const (
	diaryRoom  = 100              // events that wait to be written; what comes beyond is counted
	diaryPause = time.Second      // the least time between two writes
	diaryRetry = 30 * time.Second // the longest after which a write that failed is tried again
)

// diary writes down what happened to leases, for operators, off the hot path: at
// most one call a second, and nobody waits for it. While the server cannot be
// reached, which is when most leases are lost, it keeps what there is to tell.
type diary struct {
	client *Client

	mu       sync.Mutex
	events   []proc.Event
	more     int // how many had no room
	timer    *time.Timer
	armed    bool
	written  instant
	failures int
}

func (d *diary) init(c *Client) { d.client = c }

// note takes an event. It does not block.
func (d *diary) note(e proc.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) < diaryRoom {
		d.events = append(d.events, e)
	} else {
		d.more++
	}
	if !d.armed && !d.client.isClosed() {
		d.arm(d.client.clock.until(d.written.add(diaryPause)))
	}
}

// arm has what there is written after a while. mu is held.
func (d *diary) arm(wait time.Duration) {
	d.armed = true
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.tick)
	} else {
		d.timer.Reset(wait)
	}
}

func (d *diary) tick() {
	if !d.client.enter() {
		return // Close writes what there is
	}
	defer d.client.leave()
	d.write(time.Second)
}

// write writes what there is. What cannot be told is kept, unless the server
// refuses it for good.
func (d *diary) write(limit time.Duration) {
	d.mu.Lock()
	events, more := d.events, d.more
	d.events, d.more, d.armed = nil, 0, false
	d.written = max(d.client.clock.now(), 1)
	d.mu.Unlock()
	if len(events) == 0 {
		return
	}
	args := []string{strconv.Itoa(proc.EventsKept), strconv.FormatInt(ceilMS(proc.EventsTTL), 10)}
	for i, e := range events {
		if i == len(events)-1 {
			e.More = more
		}
		args = append(args, e.Text())
	}
	_, err := d.client.d.Eval(d.client.backgroundCtx, driver.Call{
		Script: lua.Note, Keys: []string{keys.Events(d.client.cfg.Prefix)}, Args: args, Limit: limit,
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.failures = 0
	case refusal("", err) != nil:
		d.client.cfg.Logger.Debug("zamok: could not write down what happened", "err", err)
	default:
		room := max(0, diaryRoom-len(events))
		late := d.events[min(room, len(d.events)):]
		d.events, d.more = append(events, d.events[:len(d.events)-len(late)]...), d.more+more+len(late)
		if !d.client.isClosed() {
			d.arm(min(diaryPause<<min(d.failures, 10), diaryRetry))
		}
		d.failures++
	}
}

// close writes the last. The timer's function does nothing any more.
func (d *diary) close(limit time.Duration) {
	d.mu.Lock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.mu.Unlock()
	d.write(limit)
}

// kinds are the losses that are written down. A break is, by whoever breaks.
var kinds = map[LossReason]string{
	LostExpired: proc.Expired, LostTaken: proc.Taken, LostDeleted: proc.Deleted, LostMaxHold: proc.MaxHold, LostData: proc.Data,
}

// noteLoss writes a loss down.
func (l *Lease) noteLoss(e *LostError) {
	kind, ok := kinds[e.Reason]
	if !ok {
		return
	}
	event := proc.Event{
		Kind: kind, Name: proc.Bytes(l.Name()), Key: proc.Bytes(l.spec.keys.Lock), Token: l.token, Fence: l.fence,
		Service: l.client.cfg.Name, HeldMS: l.client.clock.now().sub(l.began).Milliseconds(), Next: e.By.Token,
	}
	if e.Err != nil {
		event.Why = fmt.Sprintf("%.256s", whatFailed(e.Err))
	}
	l.client.diary.note(event)
}

// whatFailed is a failure in words that everybody may read who can read the server.
// What the client library or a proxy says may have addresses, or a URL with its
// password; the server's own words have none.
func whatFailed(err error) string {
	var refused *driver.ServerError
	if errors.As(err, &refused) {
		return refused.Text
	}
	var u *UnavailableError
	_ = errors.As(unavailable(err), &u)
	return u.Hint
}

// noteExpiry writes down that the holder before us, who is perhaps dead and tells
// nobody, did not renew its lease: we were the first in the queue at the last look
// and have the lock now by asking for it, and whoever had released it meanwhile
// would have taken us out of the queue, but in a quarantine. before is what the last
// look told, at that server time.
func (a *attempt) noteExpiry(before *HeldError, then int64, now answer) {
	switch {
	case now.place != 1, before == nil, before.Place != 1, a.moved:
		return
	case a.s.kind == permit, before.Readers > 0: // there were others, who may have renewed theirs
		return
	case before.Holder.Foreign, before.Holder.Resting, before.NoTTL:
		return
	case now.time < then+before.TTL.Microseconds(): // deleted
		return
	}
	service := ""
	if seen := a.c.seen.get(before.Holder.Client); seen != nil {
		service = seen.service
	}
	if _, ok := token.Parse(before.Holder.Token); !ok {
		return
	}
	event := proc.Event{
		Kind: proc.Expired, Name: proc.Bytes(a.s.keys.Name), Key: proc.Bytes(a.s.keys.Lock), Token: before.Holder.Token, Fence: before.Fence,
		Service: service, HeldMS: max(0, now.time-before.Fence) / 1000, Next: a.token,
	}
	if a.s.terms == nil {
		a.c.diary.note(event)
		return
	}
	a.c.background.Go(func() { // the caller has entered the client
		if !a.c.closedSince(a.s.terms.node, then) {
			a.c.diary.note(event)
		}
	})
}
