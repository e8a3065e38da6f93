package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// kept are all faults under which a deployment promises one holder.
var kept = []string{"kept"}

// lossless are those of them under which everything is.
var lossless = []string{"lossless"}

var overlap = []validate.Property{validate.Exclusion}

// suite is what is played in turn. Those of the first block must find nothing; those of
// the second must find what the row does not promise, while fences order the holders all
// the same.
var suite = []Plan{
	{Deployment: "single", Faults: kept},
	{Deployment: "aof", Faults: kept},
	{Deployment: "quarantine", Faults: kept},
	{Deployment: "snapshot", Faults: kept},
	{Deployment: "clock", Faults: kept},
	{Deployment: "spaces", Faults: kept},
	{Deployment: "cluster", Faults: kept},
	{Deployment: "quorum3", Faults: kept},
	{Deployment: "quorum5", Faults: kept},
	{Deployment: "quarantine", Faults: lossless},
	{Deployment: "quorum3", Faults: lossless},
	{Deployment: "quorum-clock", Faults: []string{"clock-forward", "kept"}},
	{Deployment: "single", Faults: []string{"ways"}, TTL: time.Minute},

	{Deployment: "single", Faults: []string{"flush-all"}, Expect: overlap},
	{Deployment: "single", Faults: []string{"kill-server"}, Expect: overlap},
	{Deployment: "single", Faults: []string{"evict"}, Expect: overlap},
	{Deployment: "snapshot", Faults: []string{"old-data"}, Expect: overlap},
	{Deployment: "clock", Faults: []string{"clock-forward"}, Expect: overlap},
	{Deployment: "sentinel", Faults: []string{"sentinel-crash-behind"}, Expect: overlap},
}

// rare are played in a soak besides: they take long, or need luck to show anything.
var rare = []Plan{
	{Deployment: "quorum-clock", Faults: kept},
	{Deployment: "cluster", Faults: []string{"ways"}}, // after a failover there is no order for a while
	{Deployment: "sentinel", Faults: kept},
	{Deployment: "sentinel", Faults: []string{"sentinel-switch", "sentinel-crash"}},
	{Deployment: "sentinel-wait", Faults: []string{"sentinel-switch", "sentinel-crash", "sentinel-crash-behind"}},
	{Deployment: "cluster", Faults: []string{"cluster-crash", "cluster-crash-behind"}},

	{Deployment: "sentinel", Faults: []string{"sentinel-switch"}, Expect: overlap},
	{Deployment: "sentinel", Faults: []string{"sentinel-return"}, Expect: overlap},
}

// series plays plans and keeps their results.
type series struct {
	dir     string
	say     io.Writer
	workers int
	atOnce  int // campaigns

	mu      sync.Mutex // of what follows
	Results []*Result
	NotHere map[string]error // by deployment
	Seeded  int              // locks that are broken on purpose
	Caught  int              // those that were seen to be
}

// play plays a plan.
func (s *series) play(ctx context.Context, p Plan) error {
	p.Workers = s.workers
	play := Play
	if s.atOnce > 1 {
		play = apart
	}
	res, err := play(ctx, p, s.dir, s.say)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, deploy.ErrNotHere):
		s.NotHere[p.Deployment] = err
		fmt.Fprintf(s.say, "%-13s left out: %v\n", p.Deployment, err)
		return nil
	case err != nil:
		return err
	}
	s.Results = append(s.Results, res)
	if s.atOnce == 1 { // or its process has said it
		s.tell(res)
	}
	return nil
}

// tell says what came of a campaign.
func (s *series) tell(r *Result) {
	state := "ok"
	if !r.OK() {
		state = "FAILED"
	}
	fmt.Fprintf(s.say, "%-13s seed %-8d %5.0f s  %7d operations  %4d faults  %4d expected violations  %s\n",
		r.Plan.Deployment, r.Plan.Seed, r.Took.Seconds(), r.Checked.Operations, sum(r.Injected), sum(r.Expected), state)
}

func sum[K comparable](counts map[K]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// selection plays the suite once.
func (s *series) selection(ctx context.Context, seed uint64, each time.Duration) error {
	return s.playAll(ctx, func(i int) (Plan, bool) {
		if i >= len(suite) {
			return Plan{}, false
		}
		p := suite[i]
		p.Seed, p.For = seed+uint64(i), each
		return p, true
	})
}

// soak plays everything again and again until the time is over.
func (s *series) soak(ctx context.Context, seed uint64, each, long time.Duration) error {
	all := append(append([]Plan(nil), suite...), rare...)
	end := time.Now().Add(long)
	return s.playAll(ctx, func(i int) (Plan, bool) {
		p := all[i%len(all)]
		p.Seed, p.For = seed+uint64(i), each
		if p.Expect != nil {
			p.For = min(each, 15*time.Second) // there is nothing more to learn
		}
		return p, time.Now().Before(end)
	})
}

// playAll plays the broken locks and then plans, some at a time, until there is no next.
func (s *series) playAll(ctx context.Context, next func(i int) (Plan, bool)) error {
	if err := s.seeded(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, s.atOnce)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for lane := range errs {
		wg.Go(func() {
			for errs[lane] == nil {
				p, ok := next(int(taken.Add(1)) - 1)
				if !ok {
					return
				}
				errs[lane] = s.play(ctx, p)
			}
			stop() // the others
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *series) ok() bool {
	for _, r := range s.Results {
		if !r.OK() {
			return false
		}
	}
	return s.Caught == s.Seeded
}
