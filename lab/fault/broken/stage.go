package broken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/traffic"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

var limits = validate.Limits{Stall: 5 * time.Second, Recovery: time.Second, Search: 10 * time.Second}

// stage is where a scene is played: two processes, of which one reaches the server
// through a proxy.
type stage struct {
	*drivertest.Server
	t     testing.TB
	proxy *drivertest.Proxy
	log   *history.Log
	other []*drivertest.Server // of a majority, with Server
	dir   string
	ttl   time.Duration
}

func (s *Scene) stage(t testing.TB) *stage {
	t.Helper()
	server := drivertest.StartServer(t)
	st := &stage{Server: server, t: t, ttl: s.ttl, proxy: drivertest.StartProxy(t, server.Addr()), dir: t.TempDir()}
	if st.ttl == 0 {
		st.ttl = time.Second
	}
	if s.open != nil {
		st.other = []*drivertest.Server{drivertest.StartServer(t), drivertest.StartServer(t)}
		server.MustDo("SET", "zamok:fence:{redlock}", "1000000")
		st.proxy.Refuse()
	}
	var err error
	if st.log, err = history.NewLog(st.dir, "faults"); err != nil {
		t.Fatal(err)
	}
	return st
}

// play plays the scene until it is enough, or ctx ends, and returns what happened.
func (s *Scene) play(ctx context.Context, t testing.TB, flaw Flaw, enough func(played time.Duration, st *stage) bool) *history.History {
	t.Helper()
	st := s.stage(t)
	playing, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, 2) // by process
	for i, addr := range []string{st.proxy.Addr(), st.Addr()} {
		p := &traffic.Plan{
			Proc: fmt.Sprint("p", i), Dir: st.dir, Seed: uint64(i), Target: traffic.Target{Addr: st.Addr()}, Clients: 2, Routines: 2,
			TTL: st.ttl, Names: 1, Epoch: time.Hour, Hold: 5 * time.Millisecond, Pause: 5 * time.Millisecond,
			Mix: map[traffic.Work]int{traffic.Alone: 1},
		}
		if s.plan != nil {
			s.plan(p)
		}
		open := func(_ context.Context, n int) (traffic.Engine, error) {
			if s.open != nil {
				return s.open(flaw, st, p.Proc, n), nil
			}
			return New(flaw, addr, p.Proc, n, st.ttl), nil
		}
		wg.Go(func() { errs[i] = traffic.RunEngines(playing, p, open, func() {}) })
	}
	wg.Go(func() {
		for s.fault != nil && playing.Err() == nil {
			s.fault(playing, st)
		}
	})
	for start := time.Now(); ctx.Err() == nil && !enough(time.Since(start), st); st.pause(ctx, 200*time.Millisecond) {
	}
	stop()
	wg.Wait()
	st.close(ctx, slices.Contains(s.Want, validate.Residue))
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	return st.history()
}

func (s *stage) history() *history.History {
	s.t.Helper()
	h, err := history.Load(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// close writes down what is left when all leases are over, if that matters.
func (s *stage) close(ctx context.Context, residue bool) {
	s.t.Helper()
	if residue {
		s.pause(ctx, s.ttl+100*time.Millisecond)
		if err := traffic.Residue(ctx, traffic.Target{Addr: s.Addr()}, s.log); err != nil {
			s.t.Error(err)
		}
	}
	if err := s.log.Close(); err != nil {
		s.t.Error(err)
	}
}
