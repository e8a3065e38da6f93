// Package memory is a server and its driver in one, in memory: what a program
// sees of zamok on it is what it sees on a Redis server, because every script
// runs as package model restates it.
//
// It is for tests and demonstrations. It keeps nothing beyond the process and
// excludes nobody outside of it. Several clients may share one Server: they are
// then to each other as processes on one Redis server.
//
// It uses no time but that of package time, and blocks on nothing but channels
// and timers, so that in a bubble of testing/synctest hours pass at once. Its
// methods break what can break in reality: see Hang, Down, Wipe, Break,
// Intercept and Latency.
package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/model"
)

// Server is an in-memory server and a driver.Driver for it. Its methods may be
// called from many goroutines at once. It has no Close: nothing of it runs but
// the subscriptions, each of which has a Close.
type Server struct {
	// mu is held for a step at a time, never while waiting. It also makes every
	// script atomic.
	mu     sync.Mutex
	store  *model.Store
	slots  bool   // it passes for a cluster
	offset int64  // µs by which the server's clock is off
	birth  uint64 // drawn, so that no two servers have one run_id
	runID  int
	calls  map[string]int
	twins  map[string]Twin

	subs map[string][]*subscription // by channel, those that the server knows
	lost []*subscription            // those whose connection is broken

	faults
	replicas replicas
}

// New returns an empty server.
func New() *Server {
	s := &Server{
		birth: rand.Uint64(),
		calls: make(map[string]int),
		twins: make(map[string]Twin),
		subs:  make(map[string][]*subscription),
	}
	s.store = model.New(model.Env{Now: s.now, Listeners: s.listeners, Publish: s.publish, SPublish: s.publish})
	s.store.Restart(s.id())
	return s
}

// NewCluster returns an empty server that passes for a cluster. It is one server all
// the same, whose clients listen as they would in a cluster, at each slot.
func NewCluster() *Server {
	s := New()
	s.slots = true
	return s
}

// Clustered implements driver.Driver.
func (s *Server) Clustered() bool { return s.slots }

// Eval runs one script: one of zamok's, or one that Define knows.
func (s *Server) Eval(ctx context.Context, call driver.Call) (any, error) {
	if err := admit(ctx, call.Limit); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.calm() {
		reply, err := s.run(call)
		s.mu.Unlock()
		return reply, err
	}
	s.mu.Unlock()
	start := time.Now()
	f := s.prepare(call)
	s.launch(f)
	return s.await(ctx, f, start)
}

// EvalAll runs the calls in their order, as one pipeline.
func (s *Server) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	flights := make([]*flight, len(calls))
	start := time.Now()
	for i, call := range calls {
		if err := admit(ctx, call.Limit); err != nil {
			results[i].Err = err
			continue
		}
		flights[i] = s.prepare(call)
	}
	s.launch(slices.DeleteFunc(slices.Clone(flights), func(f *flight) bool { return f == nil })...)
	for i, f := range flights {
		if f != nil {
			results[i].Reply, results[i].Err = s.await(ctx, f, start)
		}
	}
	return results
}

func (s *Server) prepare(call driver.Call) *flight {
	f := newFlight(call.Script.Name(), call.Limit)
	if hook := s.hook(); hook != nil {
		f.Fault = hook(call)
	}
	// The request may run after the call was given up.
	call.Keys, call.Args = slices.Clone(call.Keys), slices.Clone(call.Args)
	f.run = func() (any, error) { return s.run(call) }
	return f
}

// run executes a call. mu is held.
func (s *Server) run(call driver.Call) (any, error) {
	name := call.Script.Name()
	s.calls[name]++
	if reply, known, err := s.store.Run(name, call.Keys, call.Args); known {
		return reply, err
	}
	return s.runTwin(name, call.Keys, call.Args)
}

// admit refuses what no driver would send.
func admit(ctx context.Context, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: not sent: %w", err)
	}
	if limit <= 0 {
		return fmt.Errorf("memory: not sent: no time is left: %w", context.DeadlineExceeded)
	}
	return nil
}

// Calls returns how often each script ran, by its name. A request that was
// dropped or is still held did not run.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int, len(s.calls))
	for name, n := range s.calls {
		counts[name] = n
	}
	return counts
}

// Wipe deletes all keys, as FLUSHALL does, or a restart without persistence.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.Flush()
}

// Restart gives the server a new run_id, breaks all connections and lets them
// connect again at once. What was sent and has not run is lost. The keys stay,
// as after a restart with perfect persistence; with Wipe before it, it is one
// without any.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runID++
	s.store.Restart(s.id())
	s.dropHeld(errRestart)
	s.breakAll(errRestart)
	s.reconnect()
}

var errRestart = errors.New("memory: connection closed: the server restarted")

// Step moves the server's clock by d, forward or back, against that of the
// program. Keys expire by the server's clock.
func (s *Server) Step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d.Microseconds()
}

// Now returns the server's time in µs since 1970, as TIME gives it.
func (s *Server) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

func (s *Server) now() int64 { return time.Now().UnixMicro() + s.offset }

// id is a run_id: 40 hexadecimal digits, other ones after each Restart.
func (s *Server) id() string { return fmt.Sprintf("%016x%024x", s.birth, s.runID+1) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
