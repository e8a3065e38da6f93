package scene

import (
	"context"
	"time"

	"github.com/zamok-go/zamok/lab/bench/locker"
)

// playIdle has processes and not clients, since a library may well share among its clients
// what it asks: nothing is shared here. What is measured is only what the server counts.
func playIdle(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	holder, err := k.Open(s.Addr(), locker.Options{TTL: time.Minute})
	if err != nil {
		return err
	}
	defer holder.Close()
	h, err := holder.Of("job")(ctx)
	if err != nil {
		return err
	}
	n := e.count(e.X)
	all, kill, err := e.workers(ctx, n, Job{Locker: k.Name, Addr: s.Addr(), TTL: time.Minute})
	if err != nil {
		return err
	}
	defer kill()
	if _, err := tell(all, "wait"); err != nil {
		return err
	}
	span := e.span(4 * time.Second)
	if zamok(k) { // who looks every few minutes must be watched for longer
		span = e.span(20 * time.Second)
	}
	if err := wait(ctx, e.span(2*time.Second)); err != nil { // they have begun to wait
		return err
	}
	if err := e.watch(ctx, k, func() usage { return usageOf(s) }, span); err != nil {
		return err
	}
	return h.Release(ctx)
}

// watch reports what the server does while nothing happens.
func (e *Env) watch(ctx context.Context, k locker.Kind, look func() usage, span time.Duration) error {
	before := look()
	if err := wait(ctx, span); err != nil {
		return err
	}
	after := look()
	did, seconds := after.since(before), after.at.Sub(before.at).Seconds()
	commands, requests, presence, pings := did.work(k)
	e.add(k, "idle commands/s", commands/seconds)
	e.add(k, "idle requests/s", requests/seconds)
	e.add(k, "presence/s", presence/seconds)
	e.add(k, "pings/s", pings/seconds)
	e.add(k, "idle server %", 100*did.cpu.Seconds()/seconds)
	return nil
}

// playProcesses tells whether what holds within one process holds between several: a
// library can be quick in one, by what its goroutines share, and unfair between them.
func playProcesses(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	all, kill, err := e.workers(ctx, e.X, Job{Locker: k.Name, Addr: s.Addr()})
	if err != nil {
		return err
	}
	defer kill()
	for _, phase := range []struct {
		what, metric string
		span         time.Duration
	}{
		{"names", "cycles/s", e.span(time.Second)},
		{"share", "acquisitions/s", e.span(1500 * time.Millisecond)},
	} {
		if _, err := tell(all, phase.what+" "+e.span(100*time.Millisecond).String()); err != nil { // warms up
			return err
		}
		said, err := tell(all, phase.what+" "+phase.span.String())
		if err != nil {
			return err
		}
		t := tally{}
		for _, n := range said {
			t.taken = append(t.taken, int(n))
		}
		e.add(k, phase.metric, float64(t.acquired())/phase.span.Seconds())
		if phase.what == "share" {
			e.add(k, "jain of processes", t.jain())
		}
	}
	return nil
}
