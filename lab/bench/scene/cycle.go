package scene

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// runner locks and releases names that nobody else wants.
type runner struct {
	kind   locker.Kind
	client locker.Client
	takes  []locker.Take // one for each goroutine

	times  []time.Duration // of a cycle, by block
	cpu    time.Duration   // of the server
	cycles int
}

func newRunner(k locker.Kind, addr string, o locker.Options, goroutines int, name string) (*runner, error) {
	c, err := k.Open(addr, o)
	if err != nil {
		return nil, err
	}
	r := &runner{kind: k, client: c}
	for i := range goroutines {
		r.takes = append(r.takes, c.Of(fmt.Sprint(name, i)))
	}
	return r, nil
}

func cycle(ctx context.Context, take locker.Take) error {
	h, err := take(ctx)
	if err != nil {
		return err
	}
	return h.Release(ctx)
}

// block runs cycles in all goroutines for a while, at least one in each.
func (r *runner) block(ctx context.Context, span time.Duration) (took time.Duration, cycles int, err error) {
	var all sync.WaitGroup
	counts, errs := make([]int, len(r.takes)), make([]error, len(r.takes))
	start := time.Now()
	for i, take := range r.takes {
		all.Go(func() {
			for errs[i] == nil && (counts[i] == 0 || time.Since(start) < span) {
				errs[i] = cycle(ctx, take)
				counts[i]++
			}
		})
	}
	all.Wait()
	took = time.Since(start)
	for i := range counts {
		cycles += counts[i]
		if errs[i] != nil {
			return took, cycles, fmt.Errorf("%s: %w", r.kind.Name, errs[i])
		}
	}
	return took, cycles, nil
}

// takeTurns lets each run for a block, again and again.
func takeTurns(ctx context.Context, s *drivertest.Server, runners []*runner, turns int, span time.Duration) error {
	for _, r := range runners { // connections are made, scripts are loaded
		if _, _, err := r.block(ctx, min(span, 20*time.Millisecond)); err != nil {
			return err
		}
	}
	for turn := range turns {
		for i := range runners {
			r := runners[(i+turn)%len(runners)]
			before := serverCPU(s) // which costs the server as much as one cycle, once a block
			took, cycles, err := r.block(ctx, span)
			if err != nil {
				return err
			}
			r.cpu += serverCPU(s) - before
			r.times = append(r.times, took/time.Duration(cycles))
			r.cycles += cycles
		}
	}
	return nil
}

// time of a cycle: the median of the blocks.
func (r *runner) time() time.Duration {
	slices.Sort(r.times)
	return r.times[len(r.times)/2]
}

func (r *runner) serverCPU() time.Duration { return r.cpu / time.Duration(max(1, r.cycles)) }

// commands are those of a cycle, as the server counts.
func (r *runner) commands(ctx context.Context, s *drivertest.Server, cycles int) (commands, requests float64, err error) {
	before := usageOf(s)
	for range cycles {
		if err := cycle(ctx, r.takes[0]); err != nil {
			return 0, 0, err
		}
	}
	commands, requests, _, _ = usageOf(s).since(before).work(r.kind)
	return commands / float64(cycles), requests / float64(cycles), nil
}

// allocations are those of a cycle in the process, in all its goroutines.
func (r *runner) allocations(ctx context.Context, cycles int) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range cycles {
		if err := cycle(ctx, r.takes[0]); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(cycles), nil
}

func closeAll(runners []*runner) {
	for _, r := range runners {
		r.client.Close()
	}
}

func (e *Env) runners(s *drivertest.Server, o locker.Options, goroutines int, name string) ([]*runner, error) {
	var all []*runner
	for _, k := range e.Kinds {
		r, err := newRunner(k, s.Addr(), o, goroutines, name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// playCycle has all lockers in one process, in blocks of 50 ms: what another does on the
// machine lasts longer than that, so it meets them all. Commands and allocations are
// counted behind, without a clock, since to count them costs time.
func playCycle(ctx context.Context, e *Env) error {
	s := e.server()
	all, err := e.runners(s, locker.Options{}, 1, "job")
	if err != nil {
		return err
	}
	defer closeAll(all)
	if err := takeTurns(ctx, s, all, e.count(8), e.span(50*time.Millisecond)); err != nil {
		return err
	}
	for _, r := range all {
		e.add(r.kind, "µs", micros(r.time()))
		e.add(r.kind, "server µs", micros(r.serverCPU()))
		commands, requests, err := r.commands(ctx, s, e.count(400))
		if err != nil {
			return err
		}
		e.add(r.kind, "commands", commands)
		e.add(r.kind, "requests", requests)
		n, err := r.allocations(ctx, e.count(2000))
		if err != nil {
			return err
		}
		e.add(r.kind, "allocations", n)
	}
	// What zamok's engine allocates is not what the client library below does: that has its
	// own count in the difference to the bare scripts.
	r, err := newRunner(locker.Canned(), "", locker.Options{}, 1, "job")
	if err != nil {
		return err
	}
	defer r.client.Close()
	n, err := r.allocations(ctx, 2000)
	for _, k := range e.Kinds {
		if k.Family == locker.Zamok { // whatever is below
			e.add(k, "allocations of ours", n)
		}
	}
	return err
}

// playBusy does the same with many goroutines. Its blocks are longer, as 64 goroutines
// take a while until the pool of the client library has its connections.
func playBusy(ctx context.Context, e *Env) error {
	s := e.server()
	all, err := e.runners(s, locker.Options{}, 64, "job")
	if err != nil {
		return err
	}
	defer closeAll(all)
	if err := takeTurns(ctx, s, all, e.count(4), e.span(120*time.Millisecond)); err != nil {
		return err
	}
	for _, r := range all {
		e.add(r.kind, "cycles/s", float64(time.Second)/float64(r.time()))
		e.add(r.kind, "server µs", micros(r.serverCPU()))
	}
	return nil
}
