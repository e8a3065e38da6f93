package traffic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
)

// worker is all traffic of one process.
type worker struct {
	plan    *Plan
	log     *history.Log
	engines []Engine
	raw     redis.UniversalClient // to read registers; nil without Plan.Guarded
	outside *sql.DB               // nil without Plan.Outside
	leases  atomic.Int64          // how many were taken
	watched sync.WaitGroup        // those whose contexts have not ended
	works   []Work                // of which each turn picks one
}

// Run does what a plan says until ctx ends, and then gives back what is held. ready is
// called when all clients are there.
func Run(ctx context.Context, p *Plan, ready func()) error {
	return RunEngines(ctx, p, func(ctx context.Context, number int) (Engine, error) { return newClient(ctx, p, number) }, ready)
}

// RunEngines is Run with engines of the caller's, which can do Lock, Alone, ReadWrite
// and Permits.
func RunEngines(ctx context.Context, p *Plan, open func(ctx context.Context, number int) (Engine, error), ready func()) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	w := &worker{plan: p, works: p.works()}
	defer func() { err = errors.Join(err, w.close()) }()
	if w.log, err = history.NewLog(p.Dir, p.Proc); err != nil {
		return err
	}
	if p.Outside {
		if w.outside, err = openOutside(p.Dir); err != nil {
			return err
		}
	}
	if p.Guarded {
		w.raw = p.Target.goRedis()
	}
	for i := range p.Clients {
		e, err := open(ctx, i)
		if ctx.Err() != nil && err != nil {
			return nil // it was told to end before it reached a server
		}
		if err != nil {
			return err
		}
		w.engines = append(w.engines, e)
	}
	ready()
	w.run(ctx)
	return nil
}

func (w *worker) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i, e := range w.engines {
		busy := new(sync.Map)
		for j := range w.plan.Routines {
			r := &routine{worker: w, engine: e, busy: busy, client: fmt.Sprintf("%d/%d", i, j)}
			r.rand = rand.New(rand.NewPCG(w.plan.Seed, uint64(i*w.plan.Routines+j)))
			wg.Go(func() {
				for ctx.Err() == nil {
					r.turn(ctx)
					pause(ctx, r.about(w.plan.Pause))
				}
			})
		}
	}
	wg.Wait()
}

func (w *worker) close() error {
	var errs []error
	for _, e := range w.engines {
		if err := e.Close(); !errors.Is(err, zamok.ErrUnavailable) { // then what it holds ends by its TTL
			errs = append(errs, err)
		}
	}
	w.awaitEnds()
	if w.raw != nil {
		_ = w.raw.Close() // go-redis tells of connections that broke before
	}
	if w.outside != nil {
		errs = append(errs, w.outside.Close())
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	return errors.Join(errs...)
}

// awaitEnds waits until the ends of all contexts are written, now that all leases are
// over, or for a while if some do not end.
func (w *worker) awaitEnds() {
	const while = 5 * time.Second
	over := make(chan struct{})
	go func() { // it ends with the process where a context does not
		w.watched.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(while):
	}
}

// routine is one goroutine of a worker.
type routine struct {
	*worker
	engine Engine
	busy   *sync.Map // names that a routine of this client is alone with
	client string
	rand   *rand.Rand
}

// rush is for how long half of all turns, of all processes, are of one kind of work: so
// many want the same that it is never free.
const rush = 250 * time.Millisecond

// work is what is done next.
func (r *routine) work() Work {
	if r.in(500) {
		return r.works[history.Now()/int64(rush)%int64(len(r.works))]
	}
	return r.works[r.rand.IntN(len(r.works))]
}

// turn does one piece of work.
func (r *routine) turn(ctx context.Context) {
	switch work := r.work(); work {
	case Lock:
		name := r.name(work, r.few())
		for range 1 + r.rand.IntN(3) { // so that others of this client stand behind it
			r.mutex(ctx, name)
		}
	case Alone:
		name := r.name(work, r.number())
		if _, taken := r.busy.LoadOrStore(name, nil); taken {
			return
		}
		defer r.busy.Delete(name)
		r.mutex(ctx, name)
	case ReadWrite:
		r.readWrite(ctx, r.name(work, r.number()))
	case Permits:
		r.permits(ctx)
	case Several:
		r.several(ctx)
	case Once:
		r.once(ctx)
	case HandOn:
		r.handOn(ctx)
	}
}

func (r *routine) number() int { return r.rand.IntN(r.plan.Names) }

// few is a number of what more are to want at a time.
func (r *routine) few() int { return r.rand.IntN((r.plan.Names + 1) / 2) }

// name is that of something of a kind of work, which all processes use at this time.
func (r *routine) name(w Work, i int) string {
	return fmt.Sprintf("%s-%d{%d}", w, history.Now()/int64(r.plan.Epoch), i)
}

// about is a random time of that average.
func (r *routine) about(d time.Duration) time.Duration {
	return time.Duration(r.rand.ExpFloat64() * float64(d))
}

// in reports whether one of those of a thousand has come.
func (r *routine) in(ofThousand int) bool { return r.rand.IntN(1000) < ofThousand }

// span is for how long a lease is held.
func (r *routine) span() time.Duration {
	if r.in(r.plan.Long) {
		return r.plan.TTL + r.about(r.plan.TTL)
	}
	return r.about(r.plan.Hold)
}
