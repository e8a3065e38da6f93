package broken

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

const ttl = 2 * time.Second

var limits = validate.Limits{Stall: ttl * 3 / 4, Recovery: ttl, Search: 10 * time.Second}

// stage is where a scene is played: two processes, of which one reaches the server
// through a proxy.
type stage struct {
	*drivertest.Server
	proxy *drivertest.Proxy
	log   *history.Log
	dir   string
	times atomic.Int32 // that the fault was there
}

// scene has the fault that brings a flaw out.
type scene struct {
	flaw Flaw
	want validate.Property
	plan func(p *traffic.Plan)
	// fault is made again and again, while ctx lasts.
	fault func(ctx context.Context, s *stage)
}

func scenes() []scene {
	mutexes := func(p *traffic.Plan) {}
	long := func(p *traffic.Plan) { p.Long = 500 }
	writes := func(p *traffic.Plan) { p.Guarded = true }
	return []scene{
		{DeletesAnyones, validate.Exclusion, long, nothing},
		{EndsLater, validate.Residue, mutexes, func(ctx context.Context, s *stage) { s.once(ctx, s.proxy.CutBefore(drivertest.Command("pexpire"))) }},
		{CountsFromReply, validate.Exclusion, long, lateReply},
		{ExtendsBlindly, validate.Exclusion, func(p *traffic.Plan) { p.Long, p.Extend = 1000, 500 }, silence},
		{CountsFences, validate.Fences, mutexes, wipe},
		{CountsFences, validate.Outside, func(p *traffic.Plan) { p.Outside = true }, wipe},
		{HearsOnly, validate.Liveness, mutexes, func(ctx context.Context, s *stage) {
			_, _ = s.Do("CLIENT", "KILL", "TYPE", "pubsub")
			s.pause(ctx, 50*time.Millisecond)
		}},
		{ForgetsItself, validate.Liveness, mutexes, func(ctx context.Context, s *stage) { s.once(ctx, s.proxy.CutAfter(scripts("lock:", ""))) }},
		{KeepsPlaces, validate.Liveness, mutexes, nothing},
		{LastFirst, validate.Order, mutexes, nothing},
		{ClientClocks, validate.Exclusion, func(p *traffic.Plan) { p.Mix = map[traffic.Work]int{traffic.Permits: 1} }, nothing},
		{WritesBlind, validate.Guarded, writes, lateWrite},
		{DeletesAnyones, validate.Object, long, nothing},
		{RunsAgain, validate.Once, func(p *traffic.Plan) { p.Mix = map[traffic.Work]int{traffic.Once: 1} }, nothing},
	}
}

// TestCheckersHaveTeeth: each flaw is seen by the check that is meant for it, and the
// lock without it gives that check no reason to complain.
func TestCheckersHaveTeeth(t *testing.T) {
	for _, s := range scenes() {
		t.Run(fmt.Sprintf("%s/%s", s.flaw, s.want), func(t *testing.T) {
			t.Parallel()
			long := s.caught(t)
			s.flaw = None
			for _, v := range s.play(t, func(played time.Duration, _ *stage) bool { return played >= long }).Violations {
				if v.Property == s.want {
					t.Errorf("without the flaw: %s: %s: %+v", v.Name, v.Text, v.Events)
				}
			}
		})
	}
}

// caught plays the scene until the flaw is seen, and returns how long that took.
func (s scene) caught(t *testing.T) (long time.Duration) {
	t.Helper()
	const patience = time.Minute
	seen := func(r *validate.Report) bool {
		return slices.ContainsFunc(r.Violations, func(v validate.Violation) bool { return v.Property == s.want })
	}
	r := s.play(t, func(played time.Duration, st *stage) bool {
		long = played
		if s.want == validate.Residue {
			return st.times.Load() >= 3 || played > patience
		}
		return played > patience || seen(validate.Check(st.history(t), limits))
	})
	if !seen(r) {
		t.Errorf("not caught: of %d holds, %d operations and %d faults there is %+v", r.Holds, r.Operations, len(r.Violations), r.Violations)
	}
	return long
}

// play plays the scene until it is enough, and checks what happened.
func (s scene) play(t *testing.T, enough func(played time.Duration, st *stage) bool) *validate.Report {
	t.Helper()
	server := drivertest.StartServer(t)
	st := &stage{Server: server, proxy: drivertest.StartProxy(t, server.Addr()), dir: t.TempDir()}
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
			TTL: ttl, Names: 1, Epoch: time.Hour, Hold: 5 * time.Millisecond, Pause: 5 * time.Millisecond,
			Mix: map[traffic.Work]int{traffic.Alone: 1},
		}
		s.plan(p)
		open := func(_ context.Context, n int) (traffic.Engine, error) { return New(s.flaw, addr, p.Proc, n, ttl), nil }
		wg.Go(func() {
			if err := traffic.RunEngines(ctx, p, open, func() {}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			s.fault(ctx, st)
		}
	})
	for start := time.Now(); !enough(time.Since(start), st); time.Sleep(100 * time.Millisecond) {
	}
	stop()
	wg.Wait()
	st.close(t)
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

// close writes down what is left when all leases are over.
func (s *stage) close(t *testing.T) {
	t.Helper()
	time.Sleep(ttl + 100*time.Millisecond)
	if err := traffic.Residue(context.Background(), traffic.Target{Addr: s.Addr()}, s.log); err != nil {
		t.Error(err)
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
		s.times.Add(1)
		return true
	}
}

// during makes a fault for a time, and writes it down.
func (s *stage) during(ctx context.Context, kind string, d time.Duration, end func()) {
	f := history.Fault{Kind: kind, From: history.Now(), Harms: history.Deafens | history.Stalls}
	s.pause(ctx, d)
	end()
	f.Till = history.Now()
	s.log.Fault(f)
}

// scripts matches scripts that use a key that begins so, and the plain SET of such a
// key.
func scripts(key, other string) drivertest.Match {
	return func(args []string) bool {
		script := strings.HasPrefix(strings.ToLower(args[0]), "eval") || strings.EqualFold(args[0], other)
		return script && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, key) })
	}
}

func nothing(ctx context.Context, _ *stage) { <-ctx.Done() }

// lateReply keeps replies back for a third of a TTL.
func lateReply(ctx context.Context, s *stage) {
	f := s.proxy.HoldReply(scripts("lock:", ""))
	if s.once(ctx, f) {
		s.pause(ctx, ttl/5)
	}
	f.Release()
}

// silence cuts the process off for most of a lease, without a word.
func silence(ctx context.Context, s *stage) {
	s.pause(ctx, ttl)
	s.proxy.Blackhole()
	s.during(ctx, "blackhole", 2*ttl, s.proxy.Resume)
}

func wipe(ctx context.Context, s *stage) {
	s.pause(ctx, 300*time.Millisecond)
	if ctx.Err() == nil {
		_, _ = s.Do("FLUSHALL")
	}
}

// lateWrite keeps a write back until its lease is over.
func lateWrite(ctx context.Context, s *stage) {
	f := s.proxy.Hold(scripts("register:", "set"))
	if s.once(ctx, f) {
		s.during(ctx, "late write", ttl+ttl/2, func() {})
	}
	f.Release()
}
