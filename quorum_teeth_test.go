package zamok_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamoktest"
)

// lying is a member whose answers a client misunderstands, as a mistake in the quorum
// would have it do.
type lying struct {
	driver.Driver
	lie func(d driver.Driver, call driver.Call, reply any, err error) (any, error)
}

func (l lying) Eval(ctx context.Context, call driver.Call) (any, error) {
	reply, err := l.Driver.Eval(ctx, call)
	return l.lie(l.Driver, call, reply, err)
}

func (l lying) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := l.Driver.EvalAll(ctx, calls)
	for i := range results {
		results[i].Reply, results[i].Err = l.lie(l.Driver, calls[i], results[i].Reply, results[i].Err)
	}
	return results
}

// withoutWriteBack: the fence is that of the votes, and no member is told of it.
type withoutWriteBack struct{ driver.Driver }

func (d withoutWriteBack) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script == lua.Confirm {
		return []any{"confirmed", call.Args[1], int64(3000), int64(0), int64(0), int64(0), ""}, nil
	}
	return d.Driver.Eval(ctx, call)
}

// unproposed: each member gives a fence of its own, so that it has to be told that of
// the lease.
type unproposed struct{ driver.Driver }

func (d unproposed) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script == lua.Vote {
		call.Args = append(slices.Clone(call.Args[:3]), "0")
	}
	return d.Driver.Eval(ctx, call)
}

// anywhere has the fence count as written back also where the vote is gone.
func anywhere(_ driver.Driver, call driver.Call, reply any, err error) (any, error) {
	if call.Script == lua.Confirm && err == nil {
		reply.([]any)[0] = "confirmed"
	}
	return reply, err
}

// silenceIsRenewed takes the longest of the deadlines: a renewal that one member has
// answered counts for those that have not.
func silenceIsRenewed(_ driver.Driver, call driver.Call, reply any, err error) (any, error) {
	if call.Script == lua.Renew && err != nil {
		return []any{"renewed", "1", int64(3000), int64(0), int64(0), int64(0), ""}, nil
	}
	return reply, err
}

// TestQuorumChaosHasTeeth: mistakes in the quorum are seen by the chaos, each in about
// one run of ten at least.
func TestQuorumChaosHasTeeth(t *testing.T) {
	for _, m := range []struct {
		name  string
		seeds uint64 // even ones have the clocks apart
		over  func(d driver.Driver) driver.Driver
		fresh bool // a member that lost its data votes at once
	}{
		{name: "no write-back", over: func(d driver.Driver) driver.Driver { return withoutWriteBack{unproposed{d}} }},
		{name: "a fresh member votes", seeds: 1, fresh: true},
		{name: "the largest deadline", over: func(d driver.Driver) driver.Driver { return lying{d, silenceIsRenewed} }},
	} {
		t.Run(m.name, func(t *testing.T) {
			var seen atomic.Int32
			for seed := m.seeds; seed < 1000 && seen.Load() == 0; seed += 2 {
				inQuorum(t, 3, func(t *testing.T, all members) {
					c := newChaos(t, zamoktest.New(t, nil), seed)
					c.broken = func(string, ...any) { seen.Add(1) }
					if c.apart, c.fresh = seed%2 == 0, m.fresh; c.apart {
						all.apart()
					}
					for _, s := range all {
						s.Intercept(c.fault)
						s.InterceptMessage(c.messageFault)
					}
					c.fight(all, func(t *testing.T) *zamok.Client { return all.clientOver(t, m.over) })
				})
			}
			if seen.Load() == 0 {
				t.Error("it was not seen")
			}
		})
	}
}

// TestQuorumWriteBackIsOnlyForVoters, and counted where the vote is gone it would order
// nothing.
func TestQuorumWriteBackIsOnlyForVoters(t *testing.T) {
	for _, over := range []func(driver.Driver) driver.Driver{nil, func(d driver.Driver) driver.Driver { return lying{d, anywhere} }} {
		inQuorum(t, 3, func(t *testing.T, all members) {
			if b, a := overtaken(t, all, over); (a != 0 && a <= b) != (over != nil) {
				t.Errorf("with a lie %v: fence %d after %d", over != nil, a, b)
			}
		})
	}
}
