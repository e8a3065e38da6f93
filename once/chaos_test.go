package once_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

// history is what happened to one key, and complains at once about what must not.
type history struct {
	t      *testing.T
	policy once.Policy

	mu      sync.Mutex
	starts  int    // runs that began; the number of the last one is its value
	goes    bool   // one goes on
	last    string // how the last one ended: its value, "again", "failed", or "" if it goes on
	settled string // an outcome that somebody was given as stored
}

var (
	errNot    = errors.New("not now")
	errBroken = errors.New("broken")
)

// run is the function of a run: it takes a random time, stops when it is told to,
// and ends in one of the ways. Sometimes its process is cut off for good meanwhile.
func (h *history) run(r *rand.Rand, cutOff func()) func(context.Context, once.Run) (string, error) {
	takes, how := time.Duration(r.Int64N(int64(40*time.Second))), r.IntN(6)
	return func(ctx context.Context, _ once.Run) (string, error) {
		n := h.begin()
		if how == 0 {
			cutOff()
		}
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return h.end("failed", "", context.Cause(ctx))
		}
		switch how {
		case 1:
			return h.end("again", "", once.Again(errNot))
		case 2:
			return h.end("failed", "", errBroken)
		}
		return h.end(n, n, nil)
	}
}

func (h *history) begin() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.goes:
		h.t.Errorf("two runs at a time")
	case h.settled != "":
		h.t.Errorf("a run although %s is stored", h.settled)
	case h.policy == once.GiveUp && h.starts > 0 && h.last != "again":
		h.t.Errorf("a second run under GiveUp, after one that ended %q", h.last)
	}
	h.starts++
	h.goes, h.last = true, ""
	return strconv.Itoa(h.starts)
}

func (h *history) end(how, value string, err error) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.goes, h.last = false, how
	return value, err
}

// stored checks an outcome that somebody was given as stored.
func (h *history) stored(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value != h.last || value != strconv.Itoa(h.starts) || h.settled != "" && h.settled != value {
		h.t.Errorf("outcome %q of %d runs, of which the last ended %q; before it was %q", value, h.starts, h.last, h.settled)
	}
	h.settled = value
}

// misfortune draws what happens to a call. Requests may come later than their
// lease lasts.
func misfortune(r *rand.Rand, mu *sync.Mutex, count *atomic.Int64) func(driver.Call) memory.Fault {
	return func(driver.Call) memory.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(6) > 0 {
			return memory.Fault{}
		}
		count.Add(1)
		switch r.IntN(6) {
		case 0:
			return memory.Fault{DropRequest: true}
		case 1:
			return memory.Fault{DropReply: true}
		case 2:
			return memory.Fault{Err: errors.New("cut")}
		case 3:
			return memory.Fault{DropReply: true, Err: errors.New("cut")}
		case 4:
			return memory.Fault{Delay: time.Duration(r.Int64N(int64(30 * time.Second)))}
		}
		return memory.Fault{DelayReply: time.Duration(r.Int64N(int64(4 * time.Second)))}
	}
}

// tally counts over all rounds what happened, so that a test in which nothing does
// is found out.
type tally struct{ faults, starts, replays, interrupted atomic.Int64 }

// Whatever is lost or late, the promises hold.
func TestChaos(t *testing.T) {
	var sum tally
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		for seed := range uint64(25) {
			bubble(t, func(t *testing.T, s *zamoktest.Server) { chaos(t, s, policy, seed, &sum) })
		}
	})
	t.Logf("%d faults, %d runs, %d replays, %d interruptions", sum.faults.Load(), sum.starts.Load(), sum.replays.Load(), sum.interrupted.Load())
	if sum.faults.Load() < 1000 || sum.starts.Load() < 100 || sum.replays.Load() < 100 || sum.interrupted.Load() < 20 {
		t.Error("too little happened for this to say anything")
	}
}

// chaos is one round: some actors, some keys.
func chaos(t *testing.T, s *zamoktest.Server, policy once.Policy, seed uint64, sum *tally) {
	var mu sync.Mutex
	var cut sync.Map // *zamok.Client: those that are cut off
	random := misfortune(rand.New(rand.NewPCG(seed, 0)), &mu, &sum.faults)
	s.Intercept(func(call driver.Call) memory.Fault {
		gone := false
		cut.Range(func(c, _ any) bool {
			gone = gone || ofClient(call, c.(*zamok.Client))
			return true
		})
		if gone {
			return memory.Fault{DropRequest: true}
		}
		return random(call)
	})
	keys := []*history{{t: t, policy: policy}, {t: t, policy: policy}, {t: t, policy: policy}}
	var all sync.WaitGroup
	for actor := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, actor+1))
		all.Go(func() {
			var c *zamok.Client
			for range 12 {
				if _, gone := cut.Load(c); c == nil || gone {
					c = quiet(t, s) // a process that died is followed by another
				}
				i := r.IntN(len(keys))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(2*time.Minute))))
				out, err := once.Do(ctx, with(t, c, &once.Config{Policy: policy}), strconv.Itoa(i), keys[i].run(r, func() { cut.Store(c, true) }))
				cancel()
				if err == nil {
					keys[i].stored(out.Value)
				}
				if out.Replayed {
					sum.replays.Add(1)
				}
				if errors.Is(err, once.ErrInterrupted) {
					sum.interrupted.Add(1)
				}
			}
		})
	}
	all.Wait()
	for _, h := range keys {
		sum.starts.Add(int64(h.starts))
	}
}

// quiet makes a client that logs nothing.
func quiet(t *testing.T, s *zamoktest.Server) *zamok.Client {
	c, err := zamok.New(s.Server, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Intercept(nil)
		_ = c.Close()
	})
	return c
}

func TestChaosHasTeeth(t *testing.T) {
	h := &history{t: &testing.T{}, policy: once.GiveUp}
	h.begin()
	if h.begin(); !h.t.Failed() {
		t.Error("two runs at a time are not seen")
	}
	h = &history{t: &testing.T{}, policy: once.GiveUp}
	h.begin()
	_, _ = h.end("failed", "", nil)
	if h.begin(); !h.t.Failed() {
		t.Error("a second run under GiveUp is not seen")
	}
	h = &history{t: &testing.T{}, policy: once.Retry}
	h.begin()
	_, _ = h.end("1", "1", nil)
	h.begin()
	_, _ = h.end("2", "2", nil)
	if h.stored("1"); !h.t.Failed() {
		t.Error("the outcome of a superseded run is not seen")
	}
}
