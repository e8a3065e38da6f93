package cli

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zamok-go/zamok"
)

const (
	quietWait = time.Second      // waiting is normal for so long: nothing is said
	nextNews  = 10 * time.Second // at least, from one report of a wait to the next
)

// progress tells the user how waiting and holding go, out of the library's
// hooks. Its methods are quick: talk never makes them wait.
type progress struct {
	talk    *talk
	name    string
	several bool // others are taken with it: what is told has the name that it is about
	// who says what service has the lease of that name with that token, and why; it may
	// take a while.
	who func(name, token string) (service, reason string)

	mu      sync.Mutex
	info    *zamok.WaitingInfo // the last that was told of this wait
	at      time.Time          // when it was told
	since   time.Time          // when this wait began
	timer   *time.Timer        // for the next report
	told    *zamok.WaitingInfo // what was reported, nil when nothing was
	toldAt  time.Time
	lease   held
	outage  bool // a warning was given, and no renewal has succeeded since
	polling bool
}

func newProgress(t *talk, name string) *progress { return &progress{talk: t, name: name} }

func (p *progress) trace() *zamok.Trace {
	return &zamok.Trace{Waiting: p.waiting, Renewed: p.renewed, Subscription: p.subscription}
}

// begin is called before a wait, end after it, with what came of it.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info, p.told, p.toldAt, p.since = nil, nil, time.Time{}, time.Now()
	p.timer = time.AfterFunc(quietWait, p.report)
}

func (p *progress) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.info = nil
	if !p.toldAt.IsZero() && err == nil {
		p.talk.say("%q: the wait is over after %s", p.name, ago(time.Since(p.since)))
	}
	p.since = time.Time{}
}

func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// waiting is told how the wait goes. What is news is reported, but seldom: a
// wait of an hour is to be a few lines in the mail of cron.
func (p *progress) waiting(i zamok.WaitingInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info, p.at = &i, time.Now()
	if !p.toldAt.IsZero() && (p.told == nil || p.told.Place != i.Place || fenceOf(p.told) != fenceOf(&i)) {
		p.timer.Reset(max(0, nextNews-time.Since(p.toldAt)))
	}
}

func fenceOf(i *zamok.WaitingInfo) int64 {
	if i.Held == nil {
		return 0
	}
	return i.Held.Fence
}

// report says who is waited for. It runs in the timer's goroutine, so it may ask
// the server.
func (p *progress) report() {
	p.mu.Lock()
	name, info := p.name, p.info
	if p.several && info != nil {
		name = info.Name
	}
	p.mu.Unlock()
	var service, reason string
	if p.who != nil && info != nil && info.Held != nil {
		service, reason = p.who(name, info.Held.Holder.Token)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return // the wait ended meanwhile
	}
	if p.info == nil {
		p.talk.say("%q: no answer from the server so far, trying on", p.name)
	} else {
		if h := p.info.Held; h != nil && service != "" {
			known := *h
			known.Service, known.Reason = service, reason
			p.info.Held = &known
		}
		p.talk.say("waiting for %q: %s; place %d in line", name, holderNow(p.info.Held, time.Since(p.at)), p.info.Place)
	}
	p.told, p.toldAt = p.info, time.Now()
}

// holderNow says who holds and since when, with the time that went by since the
// server told it.
func holderNow(h *zamok.HeldError, age time.Duration) string {
	if h == nil {
		return "held"
	}
	if h.Quarantine {
		return h.Describe()
	}
	text := "held by "
	switch {
	case h.Permits > 0:
		text = fmt.Sprintf("%d of %d permits are held, one by ", h.InUse, h.Permits)
	case h.Readers > 1:
		text = fmt.Sprintf("%d readers hold it, one of them ", h.Readers)
	case h.Readers == 1:
		text = "a reader holds it: "
	case h.Holder.Resting:
		text = "at rest after "
	}
	if h.Service != "" {
		text += h.Service + " on "
	}
	text += h.Holder.String()
	if h.Since > 0 {
		text += " for " + ago(h.Since+age)
	}
	if h.Fence > 0 {
		text += fmt.Sprintf(" (fence %d)", h.Fence)
	}
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	if h.NoTTL {
		text += ", and its key has no TTL: it stays until somebody deletes it"
	}
	return text
}

func (p *progress) holding(l held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = l
}

// renewed warns once of an outage, and says when it is over.
func (p *progress) renewed(i zamok.RenewedInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.name
	if p.several {
		name = i.Name
	}
	switch {
	case i.Err != nil && !p.outage && !errors.Is(i.Err, zamok.ErrReleased):
		p.outage = true
		p.talk.say("warning: cannot renew the lock %q: %v; trying on, the lock is safe for %s", name, strip(i.Err), ago(i.Left))
	case i.Err == nil && p.outage:
		p.outage = false
		p.talk.say("the lock %q is renewed again", name)
	}
}

func (p *progress) subscription(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.info != nil && !p.polling {
		p.polling = true
		p.talk.say("warning: %v: asking the server again and again instead of being woken", strip(err))
	}
}
