package drivertest

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func pubsubCases() []serverCase {
	return []serverCase{
		{"SubscribeInTheStream", caseSubscribeInTheStream},
		{"SubscribeOwnConnection", caseSubscribeOwnConnection},
		{"SubscribeRefused", caseSubscribeRefused},
		{"SubscriptionKilled", caseSubscriptionKilled},
		{"SubscriptionServerRestart", caseSubscriptionServerRestart},
		{"SubscriptionSilent", caseSubscriptionSilent},
		{"SubscriptionIdle", caseSubscriptionIdle},
		{"SubscriptionClose", caseSubscriptionClose},
		{"SubscriptionCloseWhileBroken", caseSubscriptionCloseWhileBroken},
		{"SubscriptionCloseWhileHung", caseSubscriptionCloseWhileHung},
		{"SubscriptionCloseAtOnce", caseSubscriptionCloseAtOnce},
	}
}

// subscribe returns a subscription that is confirmed.
func (e *env) subscribe(d driver.Driver) (driver.Subscription, *events) {
	e.Helper()
	ev := newEvents()
	sub, err := d.Subscribe(e.Context(), long, "ch", ev.handle)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { sub.Close() })
	ev.want(e, driver.Subscribed)
	return sub, ev
}

// hears publishes until a message arrives: after a break the server may still
// count the old connection.
func (e *env) hears(ev *events, payload string) {
	e.Helper()
	if n := e.server.MustDo("PUBLISH", "ch", payload).(int64); n < 1 {
		e.Fatalf("the server knows of %d subscriptions", n)
	}
	if got := ev.want(e, driver.Message).Payload; got != payload {
		e.Fatalf("got %q, want %q", got, payload)
	}
}

// Messages that come with the confirmation, or right behind it, come after
// Subscribed and none is lost: from the first one on there is no gap.
func caseSubscribeInTheStream(e *env) {
	d := e.driver()
	stop := make(chan struct{})
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				e.server.Do("PUBLISH", "ch", strconv.Itoa(i))
			}
		}
	})
	for range 20 {
		ev := newEvents()
		sub, err := d.Subscribe(e.Context(), long, "ch", ev.handle)
		if err != nil {
			e.Fatal(err)
		}
		ev.want(e, driver.Subscribed)
		first, _ := strconv.Atoi(ev.want(e, driver.Message).Payload)
		for i := range 50 {
			if got := ev.want(e, driver.Message).Payload; got != strconv.Itoa(first+i+1) {
				e.Fatalf("message %s after %d", got, first+i)
			}
		}
		sub.Close()
	}
	close(stop)
	publisher.Wait()
}

// A subscription must not be at the mercy of commands: not wait behind them,
// nor break with their connection.
func caseSubscribeOwnConnection(e *env) {
	d := e.driver()
	_, ev := e.subscribe(d)
	e.server.MustDo("CLIENT", "KILL", "TYPE", "normal")
	e.hears(ev, "still here")
	works(e, d)
	ev.wantNone(e)
}

// Without the right to subscribe a waiter polls instead, and says so once. That
// must be told from a server that cannot be reached, and at once.
func caseSubscribeRefused(e *env) {
	d := e.driver()
	e.server.MustDo("ACL", "SETUSER", "default", "resetchannels")
	start := time.Now()
	_, err := d.Subscribe(e.Context(), long, "ch", func(ev driver.Event) { e.Errorf("event %v", ev) })
	if code(err) != "NOPERM" {
		e.Errorf("without the right to the channel: %v", err)
	}
	e.server.MustDo("ACL", "SETUSER", "default", "allchannels", "-subscribe")
	_, err = d.Subscribe(e.Context(), long, "ch", func(ev driver.Event) { e.Errorf("event %v", ev) })
	if code(err) != "NOPERM" {
		e.Errorf("without the right to SUBSCRIBE: %v", err)
	}
	if took := time.Since(start); took > long/4 {
		e.Errorf("took %v", took)
	}
	e.server.MustDo("ACL", "SETUSER", "default", "+subscribe")
	_, ev := e.subscribe(d)
	e.hears(ev, "allowed")
}

// Losing the connection is seen at once (the waiter asks the server then, for
// what was published meanwhile is lost), and repaired without help.
func caseSubscriptionKilled(e *env) {
	d := e.driver()
	_, ev := e.subscribe(d)
	for i := range 3 {
		if n := e.server.MustDo("CLIENT", "KILL", "TYPE", "pubsub"); n != int64(1) {
			e.Fatalf("killed %v connections", n)
		}
		if b := ev.want(e, driver.Broken); b.Err == nil || isServerError(b.Err) {
			e.Errorf("broken by %v", b.Err)
		}
		ev.want(e, driver.Subscribed)
		e.hears(ev, fmt.Sprint("again ", i))
		// A library that connected by itself as well must have let go of that.
		eventually(e, "one connection to be left", func() bool {
			v := e.server.MustDo("PUBSUB", "NUMSUB", "ch").([]any)
			return v[1] == int64(1)
		})
	}
}

// The same when it takes a while, with refused connections in between.
func caseSubscriptionServerRestart(e *env) {
	d := e.driver()
	_, ev := e.subscribe(d)
	e.server.Kill()
	ev.want(e, driver.Broken)
	ev.wantNone(e)
	e.server.Restart()
	ev.want(e, driver.Subscribed)
	e.hears(ev, "after the restart")
	works(e, d)
}

// A connection that died without a word (a firewall that forgot it) never ends
// by itself: it looks like one on which nothing is published. Only asking the
// server tells.
func caseSubscriptionSilent(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	_, ev := e.subscribe(d)
	p.Blackhole()
	ev.want(e, driver.Broken)
	p.KillAll()
	p.Resume()
	ev.want(e, driver.Subscribed)
	eventually(e, "the dead connection to be gone", func() bool {
		v := e.server.MustDo("PUBSUB", "NUMSUB", "ch").([]any)
		return v[1] == int64(1)
	})
	e.hears(ev, "after the silence")
}

// A connection on which nothing is published is not dead, and a user without
// the right to PING has one, too.
func caseSubscriptionIdle(e *env) {
	d := e.driver()
	_, ev := e.subscribe(d)
	asked := func() int64 {
		c := e.server.Commands()
		_, refused, _ := strings.Cut(e.server.MustDo("INFO", "errorstats").(string), "errorstat_NOPERM:count=")
		refused, _, _ = strings.Cut(refused, "\r")
		n, _ := strconv.ParseInt(refused, 10, 64)
		return c["ping"] + c["subscribe"] + n
	}
	before := asked()
	eventually(e, "four signs of life", func() bool { return asked() >= before+4 })
	e.server.MustDo("ACL", "SETUSER", "default", "-ping")
	before = asked()
	eventually(e, "four signs of life without PING", func() bool { return asked() >= before+4 })
	e.hears(ev, "without PING")
	ev.wantNone(e)
}

// Close leaves nothing: no goroutine of ours, and no connection that the server
// would count as a listener.
func caseSubscriptionClose(e *env) {
	d := e.driver()
	before := goroutines()
	for range 3 {
		sub, _ := e.subscribe(d)
		var closers sync.WaitGroup
		for range 4 {
			closers.Go(func() { sub.Close() })
		}
		closers.Wait()
	}
	e.nothingSubscribed()
	checkLeaks(e, before)
}

// Close must not wait for a server that is not there.
func caseSubscriptionCloseWhileBroken(e *env) {
	d := e.driver()
	before := goroutines()
	sub, ev := e.subscribe(d)
	e.server.Kill()
	ev.want(e, driver.Broken)
	e.closesAtOnce(sub)
	ev.wantNone(e)
	checkLeaks(e, before)
	e.server.Restart()
	works(e, d)
	e.nothingSubscribed()
}

// Nor for one that hangs.
func caseSubscriptionCloseWhileHung(e *env) {
	d := e.driver()
	sub, _ := e.subscribe(d)
	e.server.Pause()
	e.closesAtOnce(sub)
	e.server.Resume()
	e.nothingSubscribed()
}

func (e *env) closesAtOnce(sub driver.Subscription) {
	e.Helper()
	start := time.Now()
	if err := sub.Close(); err != nil {
		e.Errorf("Close: %v", err)
	}
	if took := time.Since(start); took > slack {
		e.Errorf("Close took %v", took)
	}
}

// Close right behind Subscribe, and Subscribe given up at any moment of its
// work, leave nothing either.
func caseSubscriptionCloseAtOnce(e *env) {
	d := e.driver()
	before := goroutines()
	for i := range 60 {
		limit := time.Duration(i) * 50 * time.Microsecond // around the time that it takes
		sub, err := d.Subscribe(e.Context(), limit+1, "ch", func(driver.Event) {})
		if err == nil {
			sub.Close()
		} else if isServerError(err) {
			e.Errorf("given up after %v: %v", limit, err)
		}
	}
	e.nothingSubscribed()
	works(e, d)
	checkLeaks(e, before)
}
