package inspect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/internal/token"
)

// Event is one that happened to a lease.
type Event struct {
	ID   string        // for the next call of Events
	Time time.Time     // by the server's clock
	Ago  time.Duration // by the server's clock

	Kind    string // see the kinds; more may come
	Of      Kind   // KindSemaphore of a permit, else KindLock
	Name    string
	Key     string
	Holder  zamok.Holder // whose lease it was
	Service string       // of the holder
	Fence   int64
	Held    time.Duration // how long it was held; 0 when not known

	By   string       // who broke it
	Now  bool         // of EventBroken: it was taken away at once; else its holder was asked
	Why  string       // why it was broken; of others the last failure, if there was one
	Next zamok.Holder // who has the lock now, as far as the writer knew
	More int          // so many of that moment are left out, since there were too many
}

// Title is that of the lock: see Lock.Title.
func (e Event) Title() string { return title(e.Of, e.Name) }

// The kinds of events.
const (
	EventExpired = proc.Expired // its holder did not renew it in time
	EventTaken   = proc.Taken   // the key held another token
	EventDeleted = proc.Deleted // the key was gone before its time
	EventBroken  = proc.Broken  // an operator took it away, or asked its holder to stop
	EventMaxHold = proc.MaxHold // MutexConfig.MaxHold ended it
	EventData    = proc.Data    // the server lost what it had
)

// mostEvents is how many are read at once, and as many as are kept.
const mostEvents = proc.EventsKept

var eventID = regexp.MustCompile(`^[0-9]{1,19}(-[0-9]{1,19})?$`)

// Events returns what happened to leases, oldest first: with an empty after the
// newest, and otherwise what came after the event with that ID. most is 1 to 1,000;
// 0 is 1,000.
//
// It is a record for people. A holder writes down what it noticed, if it could; of
// one that died the next in line tells, if anybody waited. The server keeps 1,000 events, for 30 days after
// the last. What cannot be read is left out.
//
// The error is a *zamok.ConfigError for a bad argument, and wraps the driver's
// otherwise.
func (i *Inspector) Events(ctx context.Context, after string, most int) ([]Event, error) {
	if after != "" && !eventID.MatchString(after) {
		return nil, &zamok.ConfigError{Field: "after", Err: fmt.Errorf("%.64q is not the ID of an event", after)}
	}
	if most < 0 || most > mostEvents {
		return nil, &zamok.ConfigError{Field: "most", Err: fmt.Errorf("%d; it must be 1 to %d", most, mostEvents)}
	}
	if most == 0 {
		most = mostEvents
	}
	for {
		events, last, full, err := i.readEvents(ctx, after, most)
		// With nothing to return the caller could not ask for what comes behind
		// what cannot be read.
		if err != nil || len(events) > 0 || after == "" || !full {
			return events, err
		}
		after = last
	}
}

// readEvents runs the script once. full: there may be more behind last.
func (i *Inspector) readEvents(ctx context.Context, after string, most int) (events []Event, last string, full bool, err error) {
	reply, err := i.d.Eval(ctx, driver.Call{
		Script: lua.Events,
		Keys:   []string{keys.Events(i.prefix)},
		Args:   []string{after, strconv.Itoa(most)},
		Limit:  limit,
	})
	if err != nil {
		return nil, "", false, fmt.Errorf("inspect: asking what happened: %w", because(ctx, err))
	}
	r := fields{list: asList(reply)}
	now := r.num()
	full = len(r.list) >= 2*most
	told := make(map[proc.Event]bool)
	for r.more() {
		id, text := r.text(), r.text()
		last = id
		e, ok := proc.ParseEvent(text)
		// One loss may stand there twice: written again when a reply was lost, or by
		// the holder that came back and by the next in line, who knows another fence of
		// one that was passed on in its process. A token is lost once.
		loss := proc.Event{Kind: e.Kind, Token: e.Token}
		if ok && !r.bad && (e.Kind == proc.Broken || !told[loss]) {
			told[loss] = true
			events = append(events, i.newEvent(id, now, &e))
		}
	}
	if r.bad {
		return nil, "", false, errors.New("inspect: asking what happened: the server's reply is not one of the script's")
	}
	return events, last, full, nil
}

func (i *Inspector) newEvent(id string, now int64, e *proc.Event) Event {
	ms, _, _ := strings.Cut(id, "-")
	at, _ := strconv.ParseInt(ms, 10, 64)
	return Event{
		ID: id, Time: time.UnixMilli(at), Ago: millis(now - at),
		Kind: e.Kind, Of: i.kindOf(string(e.Key)), Name: string(e.Name), Key: string(e.Key), Holder: holderOf(e.Token), Service: e.Service,
		Fence: e.Fence, Held: millis(e.HeldMS), By: e.By, Now: e.Now, Why: e.Why, Next: holderOf(e.Next), More: e.More,
	}
}

// holderOf is who had a token; nobody without one, and a foreign program with any
// other text.
func holderOf(text string) zamok.Holder {
	h, ok := token.Parse(text)
	if !ok && text != "" {
		h = token.Holder{Token: text, Foreign: true}
	}
	return zamok.Holder(h)
}
