package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
)

// tryPubSub subscribes as a waiter does, and sends itself a message. All that can
// go wrong makes waiting slow and nothing else, so no failure ends the exam.
func (e *exam) tryPubSub(ctx context.Context) error {
	name := "doctor-" + rand.Text()
	set, err := keys.ForName(e.conf.Prefix, name)
	if err != nil {
		return err // cannot be: the prefix was checked
	}
	at := listening{channel: keys.Inbox(e.conf.Prefix, name), publish: "PUBLISH", numsub: "NUMSUB", ask: e.ask}
	if e.d.Clustered() {
		at = listening{channel: set.Inbox(name), publish: "SPUBLISH", numsub: "SHARDNUMSUB", ask: func(ctx context.Context, args ...string) (any, string, error) {
			return e.eval(ctx, relay, set.One(), args)
		}}
	}
	events := make(chan driver.Event, 8)
	sub, err := e.d.Subscribe(ctx, limit, at.channel, func(ev driver.Event) {
		select {
		case events <- ev:
		default: // it must not block; more than one message is not waited for
		}
	})
	var said *driver.ServerError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &said):
		before := len(e.trial.rules) + len(e.trial.unknown)
		e.trial.note("+subscribe", "SUBSCRIBE", "", said.Text)
		if before == len(e.trial.rules)+len(e.trial.unknown) {
			e.add(deaf("SUBSCRIBE was answered: " + said.Text))
		}
		return nil
	case err != nil:
		e.add(deaf("a subscription failed: " + err.Error()))
		return nil
	}
	defer sub.Close()
	return e.tryMessage(ctx, at, events)
}

// listening is how a waiter is told and seen: in a cluster at the primary of a slot,
// to which only a script with a key finds its way.
type listening struct {
	channel, publish, numsub string

	ask func(ctx context.Context, args ...string) (reply any, refused string, err error)
}

// relay runs one command where the key is.
var relay = driver.NewScript("doctor-relay", "return redis.call(unpack(ARGV))")

func (e *exam) tryMessage(ctx context.Context, at listening, events <-chan driver.Event) error {
	began := time.Now()
	_, refused, err := at.ask(ctx, at.publish, at.channel, "doctor")
	if err != nil || refused != "" {
		return err // a right that tryScripts has missed as well
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case ev := <-events:
			if ev.Kind == driver.Message {
				e.add(heard(time.Since(began)))
				return e.tryEars(ctx, at)
			}
		case <-timer.C:
			e.add(deaf(fmt.Sprintf("a message did not arrive within %v", limit)))
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryEars: the scripts give the lock to nobody whom the server does not see
// listening, and messages can arrive where the sender does not see it: through a
// proxy, or from another node.
func (e *exam) tryEars(ctx context.Context, at listening) error {
	reply, refused, err := at.ask(ctx, "PUBSUB", at.numsub, at.channel)
	if err != nil || refused != "" {
		return err
	}
	if r := texts(reply); len(r) == 2 && r[1] == "0" {
		e.add(Finding{
			Check: "pubsub", Severity: Warning, Found: "the server does not see that this client listens",
			Reason: "Waiters count as gone and are passed over at their turn; they get the lock when they ask again.",
			Remedy: "Connect to the primary itself, and not through a proxy or to several nodes.",
		})
	}
	return nil
}

func heard(took time.Duration) Finding {
	f := Finding{Check: "pubsub", Severity: OK, Found: fmt.Sprintf("a message took %v", short(took))}
	if took >= firstGrant/2 {
		f.Severity = Warning
		f.Reason = fmt.Sprintf("A lock that is passed on is granted for %v at first: the message of it can come too late.", firstGrant)
		f.Remedy = "Find what delays messages: a busy server, a slow network."
	}
	return f
}

func deaf(found string) Finding {
	return Finding{Check: "pubsub", Severity: Warning, Found: found, Reason: theyPoll, Remedy: "Let messages pass: see maxclients, proxies and firewalls between here and the server."}
}
