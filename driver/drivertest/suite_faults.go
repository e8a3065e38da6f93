package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/zamok-go/zamok/driver"
)

func faultCases() []serverCase {
	return []serverCase{
		{"Hung", caseHung},
		{"HungWhileConnecting", caseHungWhileConnecting},
		{"Blackhole", caseBlackhole},
		{"Down", caseDown},
		{"CutAfter", caseCutAfter},
		{"CutBefore", caseCutBefore},
		{"CutPipeline", caseCutPipeline},
		{"AbandonedIsNotRepeated", caseAbandonedIsNotRepeated},
	}
}

// An ending is a way in which a caller stops waiting.
type ending struct {
	name string
	want error
	// begin returns a context and a limit of which one ends; after says when.
	begin func() (ctx context.Context, limit, after time.Duration, free func())
}

func endings() []ending {
	const short = 100 * time.Millisecond
	return []ending{
		{"limit", context.DeadlineExceeded, func() (context.Context, time.Duration, time.Duration, func()) {
			return context.Background(), short, short, func() {}
		}},
		{"deadline", context.DeadlineExceeded, func() (context.Context, time.Duration, time.Duration, func()) {
			ctx, cancel := context.WithTimeout(context.Background(), short)
			return ctx, long, short, cancel
		}},
		// A plain cancel has no deadline that could be given to a socket.
		{"cancel", context.Canceled, func() (context.Context, time.Duration, time.Duration, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			t := time.AfterFunc(short, cancel)
			return ctx, long, short, func() { t.Stop(); cancel() }
		}},
	}
}

// callsEnd tries all ways of ending a call of every method while nothing is
// answered. Each must return soon, and say that its time was over.
func (e *env) callsEnd(d driver.Driver) {
	e.Helper()
	methods := []struct {
		name string
		call func(ctx context.Context, limit time.Duration) error
	}{
		{"Eval", func(ctx context.Context, limit time.Duration) error {
			_, err := d.Eval(ctx, driver.Call{Script: echo, Args: []string{"x"}, Limit: limit})
			return err
		}},
		{"Eval of a new script", func(ctx context.Context, limit time.Duration) error {
			_, err := d.Eval(ctx, driver.Call{Script: driver.NewScript("new", "return 1"), Limit: limit})
			return err
		}},
		{"EvalWait", func(ctx context.Context, limit time.Duration) error {
			_, _, err := d.EvalWait(ctx, driver.Call{Script: echo, Args: []string{"x"}, Limit: limit}, 1, long)
			return err
		}},
		{"EvalAll", func(ctx context.Context, limit time.Duration) error {
			c := driver.Call{Script: echo, Args: []string{"x"}, Limit: limit}
			r := d.EvalAll(ctx, []driver.Call{c, c})
			if r[0].Err == nil {
				return errors.New("no error for the first call")
			}
			return r[1].Err
		}},
		{"Do", func(ctx context.Context, limit time.Duration) error {
			_, err := d.Do(ctx, limit, "PING")
			return err
		}},
		{"Subscribe", func(ctx context.Context, limit time.Duration) error {
			_, err := d.Subscribe(ctx, limit, "ch", func(ev driver.Event) { e.Errorf("event %v", ev) })
			return err
		}},
	}
	for _, m := range methods {
		for _, end := range endings() {
			ctx, limit, after, free := end.begin()
			start := time.Now()
			err := m.call(ctx, limit)
			took := time.Since(start)
			free()
			if !errors.Is(err, end.want) || isServerError(err) {
				e.Errorf("%s, %s: %v", m.name, end.name, err)
			}
			if took < after/2 || took > after+slack {
				e.Errorf("%s, %s after %v: took %v", m.name, end.name, after, took)
			}
		}
	}
}

// nothingSubscribed waits until the server knows of no subscription: what was
// given up must not stay behind.
func (e *env) nothingSubscribed() {
	e.Helper()
	eventually(e, "the subscription to end on the server", func() bool {
		v, _ := e.server.MustDo("PUBSUB", "NUMSUB", "ch").([]any)
		return len(v) == 2 && v[1] == int64(0)
	})
}

// A server that hangs (a slow command, a stalled disk, a stopped VM) must not
// hold up a caller: the holder of a lock has to stop in time. go-redis does not
// look at the context while a command is in flight.
func caseHung(e *env) {
	d := e.driver()
	e.server.Pause()
	e.callsEnd(d)
	e.server.Resume()
	works(e, d)
	e.nothingSubscribed()
}

// The same while the library connects: the kernel accepts for a stopped server,
// and the greeting is not answered.
func caseHungWhileConnecting(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	e.server.Pause()
	p.KillAll()
	d.Do(e.Context(), 100*time.Millisecond, "PING") // a library may learn of the break by a call
	e.callsEnd(d)
	e.server.Resume()
	works(e, d)
	e.nothingSubscribed()
}

// A network that swallows everything looks like a server that hangs, and when
// it heals, connections may be dead for good.
func caseBlackhole(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	p.Blackhole()
	e.callsEnd(d)
	p.KillAll()
	p.Resume()
	works(e, d)
	e.nothingSubscribed()
}

// A server that is down is found out by a refused connection, and that is not
// an answer of the server's.
func caseDown(e *env) {
	d := e.driver()
	e.server.Kill()
	limit := 2 * time.Second
	c := driver.Call{Script: incr, Keys: []string{"k"}, Limit: limit}
	start := time.Now()
	_, err := d.Eval(e.Context(), c)
	_, errDo := d.Do(e.Context(), limit, "PING")
	r := d.EvalAll(e.Context(), []driver.Call{c, c})
	_, errSub := d.Subscribe(e.Context(), limit, "ch", func(ev driver.Event) { e.Errorf("event %v", ev) })
	for _, err := range []error{err, errDo, r[0].Err, r[1].Err, errSub} {
		if err == nil || isServerError(err) || errors.Is(err, context.Canceled) {
			e.Errorf("server down: %v", err)
		}
	}
	if took := time.Since(start); took > 4*limit+slack {
		e.Errorf("took %v", took)
	}
	e.server.Restart()
	works(e, d)
}

// The reply is lost after the script ran. Then the outcome is unknown, and the
// error must not look like an answer. A library may send the script again, as
// go-redis does: then its reply is that of the second run, which is why every
// script is written to do no harm twice.
func caseCutAfter(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	f := p.CutAfter(Containing("evalsha", "id"))
	v, err := d.Eval(e.Context(), call(once, []string{"id", "runs"}))
	<-f.Fired()
	if isServerError(err) || err == nil && v != "again" {
		e.Errorf("a lost reply came as %v, %v", v, err)
	}
	works(e, d)
	if got := e.server.MustDo("GET", "runs"); got != "1" {
		e.Errorf("the script took effect %v times", got)
	}
}

// The command is lost before it ran: the same error, for nobody can tell.
func caseCutBefore(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	f := p.CutBefore(Containing("evalsha", "id"))
	v, err := d.Eval(e.Context(), call(once, []string{"id", "runs"}))
	<-f.Fired()
	if isServerError(err) || err == nil && v != "first" {
		e.Errorf("a lost command came as %v, %v", v, err)
	}
	works(e, d)
	got := e.server.MustDo("GET", "runs")
	if err == nil && got != "1" || err != nil && got != nil {
		e.Errorf("the script took effect %v times, Eval said %v", got, err)
	}
}

// A pipeline that breaks in the middle: what was answered before may be
// reported or not, what came after must not be reported as done.
func caseCutPipeline(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	f := p.CutAfter(Containing("evalsha", "id1"))
	results := d.EvalAll(e.Context(), []driver.Call{
		call(once, []string{"id0", "runs"}), call(once, []string{"id1", "runs"}), call(once, []string{"id2", "runs"}),
	})
	<-f.Fired()
	works(e, d)
	for i, r := range results {
		id := []string{"id0", "id1", "id2"}[i]
		ran := e.server.MustDo("EXISTS", id) == int64(1)
		if isServerError(r.Err) || r.Err == nil && (r.Reply == nil || !ran) {
			e.Errorf("call %d: %v, %v; ran: %v", i, r.Reply, r.Err, ran)
		}
		if i == 2 && ran != (r.Err == nil) {
			e.Errorf("the last call: %v, %v; ran: %v", r.Reply, r.Err, ran)
		}
	}
}

// When the caller has given up and cleans up after itself, a library that sends
// the same call again would undo that.
func caseAbandonedIsNotRepeated(e *env) {
	p := StartProxy(e, e.server.Addr())
	d := e.driverAt(p.URL())
	f := p.HoldReply(Containing("evalsha", "k"))
	c := call(incr, []string{"k"})
	c.Limit = 100 * time.Millisecond
	if _, err := d.Eval(e.Context(), c); !errors.Is(err, context.DeadlineExceeded) {
		e.Errorf("Eval: %v", err)
	}
	<-f.Fired()
	conns := p.Accepted()
	p.KillAll() // the library learns that the reply will not come
	works(e, d) // and has connected again
	eventually(e, "a new connection", func() bool { return p.Accepted() > conns })
	eventually(e, "the library to be done with the call", func() bool { return !running("driver.(*boundCall).run") })
	if got := e.server.MustDo("GET", "k"); got != "1" {
		e.Errorf("the script ran %v times", got)
	}
}
