package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/deploy"
	"github.com/zamok-go/zamok/lab/fault/faults"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/traffic"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

const (
	// pace is that of faults under which all is promised.
	pace = 250 * time.Millisecond
	// poll is how often the first waiter asks who hears nothing.
	poll = 2 * time.Second
	// slack is what a busy machine may add to what takes a moment.
	slack = 2 * time.Second
	// warmUp is for how long workers run before the first fault.
	warmUp = 300 * time.Millisecond
	// calms is how long a spell of faults is, against what is calm after it.
	calms = 2
	// patience is for how long faults are done again before what is expected, and was not
	// seen, is missed.
	patience = 2 * time.Minute
	// search bounds the search for an order of the operations of one name.
	search = 20 * time.Second
	// endLimit is for how long workers may finish what they do when told to stop.
	endLimit = 40 * time.Second
)

// Result is what came of a campaign.
type Result struct {
	Plan     Plan
	Started  time.Time
	Server   string // and its version
	Took     time.Duration
	Injected map[string]int // faults that happened, by kind
	Checked  *validate.Report
	Stale    int                  // writes of holders that were over, refused
	Faulty   []validate.Violation // of what is promised
	Expected map[validate.Property]int
	Missing  []validate.Property // of Plan.Expect, that were not violated
	Idle     []string            // what the history has too little of to tell anything
	Trouble  error               `json:"-"` // the campaign itself failed
	Dir      string              // of its files
}

// OK reports whether the campaign found nothing wrong.
func (r *Result) OK() bool {
	return len(r.Faulty) == 0 && len(r.Missing) == 0 && len(r.Idle) == 0 && r.Trouble == nil
}

// Play plays a campaign with its files in a new folder of dir. The error is a
// mistake in the plan, deploy.ErrNotHere, or that of ctx, which ends it early.
func Play(ctx context.Context, p Plan, dir string, say io.Writer) (*Result, error) {
	found, err := p.resolve()
	if err != nil {
		return nil, err
	}
	c := &campaign{plan: p, resolved: found, say: say}
	if c.dir, err = os.MkdirTemp(dir, fmt.Sprintf("%s-%d-", p.Deployment, p.Seed)); err != nil {
		return nil, err
	}
	res := &Result{Plan: p, Started: time.Now(), Dir: c.dir, Expected: make(map[validate.Property]int)}
	c.stalls = drivertest.WatchStalls()
	defer c.stalls.Stop()
	res.Server, res.Injected, res.Trouble = c.act(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if errors.Is(res.Trouble, deploy.ErrNotHere) {
		return nil, res.Trouble
	}
	c.judge(res)
	res.Took = time.Since(res.Started)
	if res.OK() {
		res.Trouble = os.RemoveAll(c.dir)
	}
	return res, nil
}

// Check has the history in a folder checked as that of a campaign.
func Check(p Plan, dir string, say io.Writer) (*Result, error) {
	found, err := p.resolve()
	if err != nil {
		return nil, err
	}
	c := &campaign{plan: p, resolved: found, say: say, dir: dir}
	res := &Result{Plan: p, Dir: dir, Expected: make(map[validate.Property]int)}
	c.judge(res)
	return res, nil
}

type campaign struct {
	resolved
	plan   Plan
	dir    string
	say    io.Writer
	stalls *drivertest.Stalls // nil: none are known
}

// act makes the history.
func (c *campaign) act(ctx context.Context) (server string, injected map[string]int, err error) {
	host := deploy.NewHost(c.dir, c.say)
	defer host.Close()
	d, err := deploy.Start(host, c.kind, c.plan.Workers)
	if err != nil {
		return "", nil, err
	}
	server = d.Version()
	log, err := history.NewLog(c.dir, "runner")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	first := history.Fault{Kind: "first use", From: history.Now(), Harms: history.Stalls} // begins a quarantine
	crew, err := startCrew(c.dir, c.plan.Workers, c.worker(d))
	if first.Till = history.Now() + int64(slack); c.kind.Quarantine > 0 {
		log.Fault(first)
	}
	scene := &faults.Scene{Deployment: d, Workers: crew}
	if err == nil {
		injected, err = c.harm(ctx, scene, log)
	}
	err = errors.Join(err, crew.stop(endLimit))
	if err == nil {
		err = c.look(ctx, scene, log)
	}
	return server, injected, err
}

// harm does faults for the plan's time, or until what is expected was seen. Again and
// again it leaves the workers alone for long enough to see that all works again: while
// faults go on they excuse most of what is late.
func (c *campaign) harm(ctx context.Context, scene *faults.Scene, log *history.Log) (map[string]int, error) {
	sleep(ctx, warmUp)
	start, injected := time.Now(), make(map[string]int)
	spells := max(1, int(c.plan.For/(calms*c.calm())))
	for spell := 0; ; spell++ {
		harmful, stop := context.WithTimeout(ctx, c.plan.For/time.Duration(spells))
		player := &faults.Player{Scene: scene, Faults: c.faults, Seed: c.plan.Seed + uint64(spell)<<32, Pause: c.pace(), Log: log}
		did, err := player.Play(harmful)
		stop()
		for f, n := range did {
			injected[f] += n
		}
		if err == nil {
			err = scene.Settle()
		}
		if err != nil {
			return injected, err
		}
		enough := false
		if spell+1 >= spells {
			enough, err = c.seen()
		}
		enough = enough || err != nil || time.Since(start) > c.plan.For+patience || ctx.Err() != nil
		if enough || c.plan.Expect == nil {
			c.rest(ctx, c.calm())
		}
		if enough {
			return injected, err
		}
	}
}

// seen reports whether everything that is expected is in the history by now.
func (c *campaign) seen() (bool, error) {
	if c.plan.Expect == nil {
		return true, nil
	}
	h, err := history.Load(c.dir)
	if err != nil {
		return false, err
	}
	limits := c.limits()
	limits.Search, limits.Pictures = time.Millisecond, ""
	found := validate.Check(h.SoFar(), limits).Violations
	return !slices.ContainsFunc(c.plan.Expect, func(p validate.Property) bool {
		return !slices.ContainsFunc(found, func(v validate.Violation) bool { return v.Property == p })
	}), nil
}

// pace is the longest pause between two faults of a lane. What is not promised needs time
// to show: who took what was lost is to hold it beside who had it.
func (c *campaign) pace() time.Duration {
	if c.plan.Expect != nil {
		return c.ttl(&c.plan) / 4
	}
	return pace
}

// calm is for how long nothing is done after a spell of faults: if a lock is not taken then
// that should be, it is seen. What a row does not promise is seen without.
func (c *campaign) calm() time.Duration {
	if c.plan.Expect != nil {
		return slack
	}
	limits := c.limits()
	return limits.Recovery + limits.Stall + slack/2
}

// look writes down what is on the servers when every lease is over.
func (c *campaign) look(ctx context.Context, scene *faults.Scene, log *history.Log) error {
	if err := scene.Align(); err != nil {
		return err
	}
	sleep(ctx, c.left(&c.plan)+c.kind.Quarantine+slack/2)
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	return traffic.Residue(ctx, target(scene.Deployment, scene.Addrs(0)), log)
}

// rest waits for so long, and for as long as the machine stood still meanwhile, once.
func (c *campaign) rest(ctx context.Context, long time.Duration) {
	start := history.Now()
	sleep(ctx, long)
	sleep(ctx, min(c.stood(start, history.Now()), 2*long))
}

// stood is what a machine that stood still between two stamps may have cost: each of a
// worker, its way and a server has waited its turn as long as our thread.
func (c *campaign) stood(from, till int64) time.Duration {
	if c.stalls == nil {
		return 0
	}
	const turns = 3
	return turns * c.stalls.Between(history.Time(from), history.Time(till))
}

// deaf is for how long a client may listen to who is not the primary any more.
func (c *campaign) deaf() time.Duration {
	if c.kind.Mode == deploy.Cluster || c.kind.Mode == deploy.Sentinel {
		return 10 * time.Second // between two PINGs
	}
	return 0
}

// limits are those of the checks.
func (c *campaign) limits() validate.Limits {
	return validate.Limits{
		Stall:    c.left(&c.plan) + poll + slack,
		Stood:    c.stood,
		Dead:     poll,
		Recovery: c.kind.Quarantine + slack/2,
		Deaf:     c.deaf(),
		Grace:    c.ttl(&c.plan) / 8, // the engine's is a tenth
		Search:   search,
		Pictures: c.dir,
	}
}

// judge has the history checked and tells what was promised from what was not.
func (c *campaign) judge(res *Result) {
	h, err := history.Load(c.dir)
	if err != nil {
		res.Trouble = errors.Join(res.Trouble, err)
		res.Checked = new(validate.Report)
		return
	}
	res.Checked = validate.Check(h, c.limits())
	for i := range h.Events {
		if e := &h.Events[i]; e.Op == history.Write && e.Outcome == history.Lost {
			res.Stale++
		}
	}
	for _, v := range res.Checked.Violations {
		if slices.Contains(c.broken, v.Property) {
			res.Expected[v.Property]++
		} else {
			res.Faulty = append(res.Faulty, v)
		}
	}
	if c.plan.Expect == nil {
		res.Idle = c.idle(h, res.Checked)
	}
	for _, p := range c.plan.Expect {
		if res.Expected[p] == 0 {
			res.Missing = append(res.Missing, p)
		}
	}
	if !res.OK() {
		c.explain(res)
	}
}

// explain writes into the folder, and says, what was found.
func (c *campaign) explain(res *Result) {
	file, err := os.Create(filepath.Join(c.dir, "found.txt"))
	if err != nil {
		fmt.Fprintln(c.say, err)
		return
	}
	defer file.Close()
	out := io.MultiWriter(file, c.say)
	fmt.Fprintf(out, "FAILED: deployment %s, seed %d; its history is in %s\n", res.Plan.Deployment, res.Plan.Seed, c.dir)
	if res.Trouble != nil {
		fmt.Fprintf(out, "  the campaign itself: %v\n", res.Trouble)
	}
	for _, p := range res.Missing {
		fmt.Fprintf(out, "  not seen, though nothing promises it: a violation of %q\n", p)
	}
	for _, what := range res.Idle {
		fmt.Fprintf(out, "  too little was tried: %s\n", what)
	}
	for i, v := range res.Faulty {
		if i == 20 {
			fmt.Fprintf(out, "  and %d more\n", len(res.Faulty)-i)
			break
		}
		fmt.Fprintf(out, "  %s: %s: %s\n", v.Property, v.Name, v.Text)
		for _, e := range v.Events {
			fmt.Fprintf(out, "    %+v\n", e)
		}
	}
	fmt.Fprintf(out, "  again, in lab: %s\n", res.Plan.Command())
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
