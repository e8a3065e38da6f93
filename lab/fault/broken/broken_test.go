package broken

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/traffic"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("13"); err != nil { // most of a scene is waiting
			panic(err)
		}
	}
	redis.SetLogger(silent{}) // it prints every connection that breaks
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var limits = validate.Limits{Stall: 5 * time.Second, Recovery: time.Second, Search: 10 * time.Second}

// stage is where a scene is played: two processes, of which one reaches the server
// through a proxy.
type stage struct {
	*drivertest.Server
	proxy *drivertest.Proxy
	log   *history.Log
	other []*drivertest.Server // of a majority, with Server
	dir   string
	ttl   time.Duration
}

// scene has the fault that brings a flaw out.
type scene struct {
	flaw Flaw
	want []validate.Property
	ttl  time.Duration // default: 1 s
	plan func(p *traffic.Plan)
	// fault is made again and again, while ctx lasts. Default: none.
	fault func(ctx context.Context, s *stage)
	// open makes the client of that number of a process. Default: New.
	open func(flaw Flaw, s *stage, proc string, number int) traffic.Engine
}

func scenes() []scene {
	long := func(p *traffic.Plan) { p.Long = 500 }
	mix := func(w traffic.Work) func(*traffic.Plan) {
		return func(p *traffic.Plan) { p.Mix = map[traffic.Work]int{w: 1} }
	}
	one := func(p validate.Property) []validate.Property { return []validate.Property{p} }
	return []scene{
		{flaw: DeletesAnyones, want: []validate.Property{validate.Exclusion, validate.Object}, plan: long},
		{flaw: EndsLater, want: []validate.Property{validate.Liveness, validate.Residue}, fault: cutBefore(drivertest.Command("pexpire"))},
		{flaw: CountsFromReply, want: one(validate.Exclusion), plan: func(p *traffic.Plan) { p.Long, p.Clients, p.Routines = 1000, 1, 1 }, fault: lateReply},
		{flaw: ExtendsBlindly, want: one(validate.Exclusion), plan: func(p *traffic.Plan) { p.Long, p.Extend = 1000, 500 }, fault: cutBefore(script(1, "lock:"))},
		{flaw: CountsFences, want: []validate.Property{validate.Fences, validate.Outside}, plan: func(p *traffic.Plan) { p.Outside = true }, fault: wipe},
		{flaw: ForgetsFences, want: one(validate.Fences), open: ofMajority},
		{flaw: HearsOnly, want: one(validate.Liveness), plan: func(p *traffic.Plan) { p.Epoch, p.Routines = 300*time.Millisecond, 6 }, fault: deafen},
		{flaw: ForgetsItself, want: one(validate.Liveness), ttl: 8 * time.Second, fault: cutAfter(script(4, "lock:"))},
		{flaw: KeepsPlaces, want: one(validate.Liveness), plan: func(p *traffic.Plan) { p.Long = 200 }},
		{flaw: LastFirst, want: one(validate.Order)},
		{flaw: ClientClocks, want: one(validate.Exclusion), plan: mix(traffic.Permits)},
		{flaw: WritesBlind, want: one(validate.Guarded), plan: func(p *traffic.Plan) { p.Guarded = true }, fault: lateWrite},
		{flaw: RunsAgain, want: one(validate.Once), plan: mix(traffic.Once)},
	}
}

// TestCheckersHaveTeeth: each flaw is seen by the checks that are meant for it, and the
// lock without it gives these no reason to complain.
func TestCheckersHaveTeeth(t *testing.T) {
	for _, s := range scenes() {
		t.Run(string(s.flaw), func(t *testing.T) {
			t.Parallel()
			if s.ttl == 0 {
				s.ttl = time.Second
			}
			long := s.caught(t)
			s.flaw = None
			for _, v := range s.play(t, func(played time.Duration, _ *stage) bool { return played >= long }).Violations {
				if slices.Contains(s.want, v.Property) {
					t.Errorf("without the flaw: %s: %s: %s: %+v", v.Property, v.Name, v.Text, v.Events)
				}
			}
		})
	}
}

// caught plays the scene until the flaw is seen, and returns how long that took.
func (s scene) caught(t *testing.T) (long time.Duration) {
	t.Helper()
	const patience = time.Minute
	r := s.play(t, func(played time.Duration, st *stage) bool {
		long = played
		return played > patience || s.seen(validate.Check(soFar(st.history(t)), limits), validate.Residue)
	})
	if !s.seen(r, "") {
		t.Errorf("not caught in %d holds, %d operations; instead: %+v", r.Holds, r.Operations, r.Violations[:min(3, len(r.Violations))])
	}
	t.Logf("caught within %v", long)
	return long
}

// soFar has those who wait give up now, and all leases end, so that what is seen now is
// still seen at the end.
func soFar(h *history.History) *history.History {
	now := history.Now()
	open := make(map[string]history.Event)
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Op == history.Acquire && e.Outcome == history.Pending:
			e.Outcome, e.Return = history.Cancelled, now
		case e.Op.Takes() && e.Outcome == history.OK:
			open[e.Lease] = history.Event{Op: history.Look, Name: e.Name, Lease: e.Lease, Call: now, Return: now, Outcome: history.Lost}
		case e.Op == history.Release:
			delete(open, e.Lease)
		}
	}
	h.Events = slices.AppendSeq(h.Events, maps.Values(open))
	return h
}

// seen reports whether all that is wanted was violated, but for what shows at the end.
func (s scene) seen(r *validate.Report, end validate.Property) bool {
	return !slices.ContainsFunc(s.want, func(p validate.Property) bool {
		return p != end && !slices.ContainsFunc(r.Violations, func(v validate.Violation) bool { return v.Property == p })
	})
}

// play plays the scene until it is enough, and checks what happened.
func (s scene) play(t *testing.T, enough func(played time.Duration, st *stage) bool) *validate.Report {
	t.Helper()
	server := drivertest.StartServer(t)
	st := &stage{Server: server, ttl: s.ttl, proxy: drivertest.StartProxy(t, server.Addr()), dir: t.TempDir()}
	if s.open != nil {
		st.other = []*drivertest.Server{drivertest.StartServer(t), drivertest.StartServer(t)}
		server.MustDo("SET", "zamok:fence:{redlock}", "1000000")
		st.proxy.Refuse()
	}
	var err error
	if st.log, err = history.NewLog(st.dir, "faults"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for i, addr := range []string{st.proxy.Addr(), server.Addr()} {
		p := &traffic.Plan{
			Proc: fmt.Sprint("p", i), Dir: st.dir, Seed: uint64(i), Target: traffic.Target{Addr: server.Addr()}, Clients: 2, Routines: 2,
			TTL: s.ttl, Names: 1, Epoch: time.Hour, Hold: 5 * time.Millisecond, Pause: 5 * time.Millisecond,
			Mix: map[traffic.Work]int{traffic.Alone: 1},
		}
		if s.plan != nil {
			s.plan(p)
		}
		open := func(_ context.Context, n int) (traffic.Engine, error) {
			if s.open != nil {
				return s.open(s.flaw, st, p.Proc, n), nil
			}
			return New(s.flaw, addr, p.Proc, n, s.ttl), nil
		}
		wg.Go(func() {
			if err := traffic.RunEngines(ctx, p, open, func() {}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if s.fault == nil {
				return
			}
			s.fault(ctx, st)
		}
	})
	for start := time.Now(); !enough(time.Since(start), st); time.Sleep(200 * time.Millisecond) {
	}
	stop()
	wg.Wait()
	st.close(t, slices.Contains(s.want, validate.Residue))
	return validate.Check(st.history(t), limits)
}

func (s *stage) history(t *testing.T) *history.History {
	t.Helper()
	h, err := history.Load(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// close writes down what is left when all leases are over, if that matters.
func (s *stage) close(t *testing.T, residue bool) {
	t.Helper()
	if residue {
		time.Sleep(s.ttl + 100*time.Millisecond)
		if err := traffic.Residue(context.Background(), traffic.Target{Addr: s.Addr()}, s.log); err != nil {
			t.Error(err)
		}
	}
	if err := s.log.Close(); err != nil {
		t.Error(err)
	}
}

func (s *stage) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// once waits for a fault to happen once.
func (s *stage) once(ctx context.Context, f *drivertest.Fault) bool {
	select {
	case <-ctx.Done():
		f.Cancel()
		return false
	case <-f.Fired():
		return true
	}
}

// script matches scripts with so many keys, one of which begins so.
func script(keys int, key string) drivertest.Match {
	return func(args []string) bool {
		return len(args) > 2 && strings.HasPrefix(strings.ToLower(args[0]), "eval") && args[2] == fmt.Sprint(keys) && begins(args, key)
	}
}

func begins(args []string, with string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, with) })
}

func cutBefore(m drivertest.Match) func(context.Context, *stage) {
	return func(ctx context.Context, s *stage) { s.once(ctx, s.proxy.CutBefore(m)) }
}

func cutAfter(m drivertest.Match) func(context.Context, *stage) {
	return func(ctx context.Context, s *stage) { s.once(ctx, s.proxy.CutAfter(m)) }
}

// lateReply keeps a reply back for a fifth of a TTL.
func lateReply(ctx context.Context, s *stage) {
	f := s.proxy.HoldReply(script(4, "lock:"))
	if s.once(ctx, f) {
		s.pause(ctx, s.ttl/5)
	}
	f.Release()
}

func wipe(ctx context.Context, s *stage) {
	s.pause(ctx, 300*time.Millisecond)
	if ctx.Err() == nil {
		_, _ = s.Do("FLUSHALL")
	}
}

// lateWrite keeps a write back until its lease is over.
func lateWrite(ctx context.Context, s *stage) {
	f := s.proxy.Hold(func(args []string) bool {
		return begins(args, "register:") && !strings.EqualFold(args[0], "get")
	})
	if s.once(ctx, f) {
		s.pause(ctx, s.ttl+s.ttl/2)
	}
	f.Release()
}

// deafen ends all subscriptions.
func deafen(ctx context.Context, s *stage) {
	_, _ = s.Do("CLIENT", "KILL", "TYPE", "pubsub")
	s.pause(ctx, 50*time.Millisecond)
}

// ofMajority has nodes of which the second process does not reach the first, which has
// counted furthest.
func ofMajority(flaw Flaw, s *stage, proc string, number int) traffic.Engine {
	addrs := []string{s.Addr(), s.other[0].Addr(), s.other[1].Addr()}
	if proc == "p1" {
		addrs[0] = s.proxy.Addr()
	}
	return NewRedlock(flaw, addrs, proc, number, s.ttl)
}
