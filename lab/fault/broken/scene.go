package broken

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/traffic"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// Scene is a flaw, with the traffic and the fault that bring it out.
type Scene struct {
	Flaw Flaw
	Want []validate.Property // that it violates

	ttl  time.Duration // default: 1 s
	plan func(p *traffic.Plan)
	// fault is made again and again, while ctx lasts. Default: none.
	fault func(ctx context.Context, s *stage)
	// open makes the client of that number of a process. Default: New.
	open func(flaw Flaw, s *stage, proc string, number int) traffic.Engine
}

// Scenes are those of all flaws.
func Scenes() []Scene {
	long := func(p *traffic.Plan) { p.Long = 500 }
	mix := func(w traffic.Work) func(*traffic.Plan) {
		return func(p *traffic.Plan) { p.Mix = map[traffic.Work]int{w: 1} }
	}
	one := func(p validate.Property) []validate.Property { return []validate.Property{p} }
	two := []validate.Property{validate.Exclusion, validate.Object}
	return []Scene{
		{Flaw: DeletesAnyones, Want: two, plan: long},
		{Flaw: EndsLater, Want: []validate.Property{validate.Liveness, validate.Residue}, fault: cutBefore(drivertest.Command("pexpire"))},
		{Flaw: CountsFromReply, Want: one(validate.Exclusion), plan: func(p *traffic.Plan) { p.Long, p.Clients, p.Routines = 1000, 1, 1 }, fault: lateReply},
		{Flaw: ExtendsBlindly, Want: one(validate.Exclusion), plan: func(p *traffic.Plan) { p.Long, p.Extend = 1000, 500 }, fault: cutBefore(script(1, "lock:"))},
		{Flaw: CountsFences, Want: []validate.Property{validate.Fences, validate.Outside}, plan: func(p *traffic.Plan) { p.Outside = true }, fault: wipe},
		{Flaw: ForgetsFences, Want: one(validate.Fences), open: ofMajority},
		{Flaw: HearsOnly, Want: one(validate.Liveness), plan: func(p *traffic.Plan) { p.Epoch, p.Routines = 300*time.Millisecond, 6 }, fault: deafen},
		{Flaw: ForgetsItself, Want: one(validate.Liveness), ttl: 8 * time.Second, fault: cutAfter(script(5, "lock:"))},
		{Flaw: KeepsPlaces, Want: one(validate.Liveness), plan: func(p *traffic.Plan) { p.Long = 200 }},
		{Flaw: LastFirst, Want: one(validate.Order)},
		{Flaw: ReadsAnyway, Want: two, plan: mix(traffic.ReadWrite)},
		{Flaw: WritesAnyway, Want: two, plan: mix(traffic.ReadWrite)},
		{Flaw: GrantsOneMore, Want: two, plan: mix(traffic.Permits)},
		{Flaw: ClientClocks, Want: one(validate.Exclusion), plan: mix(traffic.Permits)},
		{Flaw: WritesBlind, Want: one(validate.Guarded), plan: func(p *traffic.Plan) { p.Guarded = true }, fault: lateWrite},
		{Flaw: GivesUp, Want: one(validate.Kept), ttl: 3 * time.Second},
		{Flaw: KeepsContexts, Want: one(validate.Told)},
		{Flaw: SaysHeld, Want: one(validate.Refusal), plan: func(p *traffic.Plan) { p.Clients, p.Routines, p.Pause = 1, 1, 30*time.Millisecond }},
		{Flaw: RunsAgain, Want: one(validate.Once), plan: mix(traffic.Once)},
	}
}

// Catch is what came of a scene.
type Catch struct {
	Seen   bool // all that is wanted was violated
	Within time.Duration
	Report *validate.Report
}

// Catch plays the scene until the flaw is seen, also when all leases are over, for about a
// minute at most. Its files are in temporary directories of t's.
func (s *Scene) Catch(ctx context.Context, t testing.TB) (c Catch) {
	t.Helper()
	const patience = time.Minute
	for start := time.Now(); ; {
		h := s.play(ctx, t, s.Flaw, func(played time.Duration, st *stage) bool {
			c.Within = played
			return time.Since(start) > patience || s.seen(validate.Check(st.history().SoFar(), limits), validate.Residue)
		})
		c.Report = validate.Check(h, limits)
		if c.Seen = s.seen(c.Report, ""); c.Seen || time.Since(start) > patience || ctx.Err() != nil {
			return c
		}
	}
}

// Acquit plays the scene for so long with a lock that lacks the flaw, and returns what
// is violated all the same of what the flaw violates.
func (s *Scene) Acquit(ctx context.Context, t testing.TB, long time.Duration) []validate.Violation {
	t.Helper()
	stalls := drivertest.WatchStalls()
	defer stalls.Stop()
	start := time.Now()
	h := s.play(ctx, t, None, func(played time.Duration, _ *stage) bool { return played >= long })
	slow := limits
	slow.Stall += stalls.Between(start, time.Now()) // the machine stood still
	r := validate.Check(h, slow)
	return slices.DeleteFunc(r.Violations, func(v validate.Violation) bool { return !slices.Contains(s.Want, v.Property) })
}

// seen reports whether all that is wanted was violated, but for what shows at the end.
func (s *Scene) seen(r *validate.Report, end validate.Property) bool {
	return !slices.ContainsFunc(s.Want, func(p validate.Property) bool {
		return p != end && !slices.ContainsFunc(r.Violations, func(v validate.Violation) bool { return v.Property == p })
	})
}
