package once_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

// crash is a point at which a process dies: from then on nothing of it reaches the
// server, and what it is told does not reach it.
type crash struct {
	name     string
	request  int64 // the request about the record at which it dies; 0: in its function
	ran      bool  // the request is executed
	released bool  // it dies instead at its release
	started  bool  // its function had begun
	giveUp   error // what the next caller gets under GiveUp; nil: an outcome
	replay   bool  // … which is the dead process's
}

var crashes = []crash{
	{name: "before the begin is stored", request: 1},
	{name: "when the begin is stored", request: 1, ran: true, giveUp: once.ErrInterrupted},
	{name: "in the function", started: true, giveUp: once.ErrInterrupted},
	{name: "before the end is stored", request: 2, started: true, giveUp: once.ErrInterrupted},
	{name: "when the end is stored", request: 2, ran: true, started: true, replay: true},
	{name: "before the release", released: true, started: true, replay: true},
}

// kill has the client die at that point. The function that it returns is the one
// to give to Do.
func (at crash) kill(s *zamoktest.Server, c *zamok.Client, th *thing) (fn func(context.Context, once.Run) (string, error), end func()) {
	var dead atomic.Bool
	var n atomic.Int64
	s.Intercept(func(call driver.Call) memory.Fault {
		if !ofClient(call, c) {
			return memory.Fault{}
		}
		if dead.Load() || at.released && call.Script.Name() == "release" {
			dead.Store(true)
			return memory.Fault{DropRequest: true}
		}
		if isSwap(call, c) && n.Add(1) == at.request {
			dead.Store(true)
			return memory.Fault{DropRequest: !at.ran, DropReply: true}
		}
		return memory.Fault{}
	})
	over := make(chan struct{})
	return func(context.Context, once.Run) (string, error) {
		th.begin()
		defer th.end()
		if at.request == 0 && !at.released {
			dead.Store(true)
			<-over // dead processes do nothing more
		}
		return "first", nil
	}, func() { close(over) }
}

func TestCrashAtEveryPoint(t *testing.T) {
	for _, at := range crashes {
		t.Run(at.name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, policy once.Policy) {
				bubble(t, func(t *testing.T, s *zamoktest.Server) { crashAt(t, s, at, policy) })
			})
		})
	}
}

func crashAt(t *testing.T, s *zamoktest.Server, at crash, policy once.Policy) {
	var first, second thing
	dying := s.Client()
	fn, end := at.kill(s, dying, &first)
	ended := make(chan struct{})
	o := with(t, dying, &once.Config{Policy: policy})
	go func() {
		defer close(ended)
		_, _ = once.Do(t.Context(), o, "pay", fn)
	}()
	synctest.Wait()
	s.AwaitHeld("once/pay")
	begin := time.Now()
	out, err := once.Do(t.Context(), on(t, s, policy), "pay", second.work(time.Second, "second", nil))
	if waited := time.Since(begin); waited > 18*time.Second {
		t.Errorf("it took %v; the TTL is 15s", waited)
	}
	switch {
	case at.replay:
		wants(t, out, err, "first", true, nil)
	case policy == once.GiveUp && at.giveUp != nil:
		wants(t, out, err, "", false, at.giveUp)
		var interrupted *once.InterruptedError
		if !errors.As(err, &interrupted) || interrupted.By.Client != dying.ID() || interrupted.Began.After(time.Now()) || time.Since(interrupted.Began) > time.Minute {
			t.Errorf("%+v", interrupted)
		}
	default:
		wants(t, out, err, "second", false, nil)
	}
	want := int64(0)
	if err == nil && !out.Replayed {
		want = 1
	}
	if first.begun.Load() == 1 != at.started || second.begun.Load() != want {
		t.Errorf("%d and %d runs", first.begun.Load(), second.begun.Load())
	}
	if policy == once.GiveUp && first.begun.Load()+second.begun.Load() > 1 {
		t.Error("two runs under GiveUp")
	}
	end()
	<-ended
	again, err2 := once.Do(t.Context(), on(t, s, policy), "pay", mustNotRun(t))
	if again.Value != out.Value || (err2 == nil) != (err == nil) {
		t.Errorf("afterwards %q, %v; it was %q, %v", again.Value, err2, out.Value, err)
	}
}

// One request or reply is lost, and the process lives: nothing is run twice, and
// nothing that is stored is overwritten.
func TestOneFault(t *testing.T) {
	cut := errors.New("connection reset by peer")
	faults := map[string]memory.Fault{
		"request cut":     {Err: cut},
		"reply cut":       {DropReply: true, Err: cut},
		"request lost":    {DropRequest: true},
		"reply lost":      {DropReply: true},
		"request delayed": {Delay: 3 * time.Second},
		"reply delayed":   {DelayReply: 3 * time.Second},
		"server busy":     {Err: &driver.ServerError{Text: "LOADING Redis is loading the dataset in memory"}},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, policy once.Policy) {
				for _, nth := range []int64{1, 2} {
					bubble(t, func(t *testing.T, s *zamoktest.Server) {
						var th thing
						c := s.Client()
						onSwap(t, s, c, nth, fault)
						out, err := once.Do(t.Context(), with(t, c, &once.Config{Policy: policy}), "pay", th.work(time.Minute, "paid", nil))
						wants(t, out, err, "paid", false, nil)
						s.Intercept(nil)
						c = s.Client() // now of a replay
						onSwap(t, s, c, 1, fault)
						out, err = once.Do(t.Context(), with(t, c, &once.Config{Policy: policy}), "pay", mustNotRun(t))
						wants(t, out, err, "paid", true, nil)
						pass(5 * time.Second) // what was delayed has come
						out, err = once.Do(t.Context(), on(t, s, policy), "pay", mustNotRun(t))
						wants(t, out, err, "paid", true, nil)
						if th.begun.Load() != 1 {
							t.Errorf("fault at request %d: %d runs", nth, th.begun.Load())
						}
					})
				}
			})
		})
	}
}

// The end of a run stands still on its way until a later run has ended.
func TestEndOfASupersededRun(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		onSwap(t, s, c, 2, memory.Fault{Delay: time.Minute})
		var first, second thing
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			out, err := once.Do(t.Context(), with(t, c, &once.Config{Policy: once.Retry}), "pay", first.work(time.Second, "first", nil))
			wants(t, out, err, "first", false, once.ErrNotStored)
			if !errors.Is(err, zamok.ErrLost) {
				t.Errorf("the superseded run: %v", err)
			}
		}()
		s.AwaitHeld("once/pay")
		pass(2 * time.Second)
		s.Lose("once/pay")
		out, err := once.Do(t.Context(), on(t, s, once.Retry), "pay", second.work(time.Second, "second", nil))
		wants(t, out, err, "second", false, nil)
		<-ended
		pass(2 * time.Minute)
		out, err = once.Do(t.Context(), on(t, s, once.Retry), "pay", mustNotRun(t))
		wants(t, out, err, "second", true, nil)
	})
}

// Nothing gets through: the call says so, and what it left is told to the next.
func TestBeginUnknown(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			c := s.Client()
			s.Intercept(func(call driver.Call) memory.Fault { return memory.Fault{DropReply: isSwap(call, c)} })
			begin := time.Now()
			_, err := once.Do(t.Context(), with(t, c, &once.Config{Policy: policy}), "pay", mustNotRun(t))
			if !errors.Is(err, zamok.ErrUnknown) || errors.Is(err, once.ErrNotStored) || time.Since(begin) > 9*time.Second {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
			// Its last word, that it did not run, was executed too.
			var th thing
			out, err := once.Do(t.Context(), on(t, s, policy), "pay", th.work(0, "paid", nil))
			wants(t, out, err, "paid", false, nil)
			if out.Attempt != 1 {
				t.Errorf("attempt %d: a run that never began is counted", out.Attempt)
			}
		})
	})
}

// The caller gives up at the very moment at which the begin is stored.
func TestContextEndsWhenTheBeginIsStored(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			tired := errors.New("tired")
			ctx, cancel := context.WithCancelCause(t.Context())
			c, err := zamok.New(&afterEval{s, func(call driver.Call) {
				if call.Script.Name() == "guard:zamok.once" {
					cancel(tired)
				}
			}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = once.Do(ctx, with(t, c, &once.Config{Policy: policy}), "pay", mustNotRun(t))
			if !errors.Is(err, tired) || !strings.Contains(err.Error(), "did not run") {
				t.Errorf("Do: %v", err)
			}
			var th thing
			out, err := once.Do(t.Context(), on(t, s, policy), "pay", th.work(0, "paid", nil))
			if wants(t, out, err, "paid", false, nil); out.Attempt != 1 {
				t.Errorf("attempt %d", out.Attempt)
			}
		})
	})
}

// The process stands still between the begin and the run, for longer than its lease
// lasts: then it does not run.
func TestPauseBeforeTheRun(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			var dead atomic.Bool
			d := &afterEval{s, func(call driver.Call) {
				if call.Script.Name() == "guard:zamok.once" {
					dead.Store(true)
					pass(20 * time.Second)
				}
			}}
			c, err := zamok.New(d, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			s.Intercept(func(call driver.Call) memory.Fault {
				return memory.Fault{DropRequest: dead.Load() && ofClient(call, c)}
			})
			_, err = once.Do(t.Context(), with(t, c, &once.Config{Policy: policy}), "pay", mustNotRun(t))
			if !errors.Is(err, zamok.ErrLost) || errors.Is(err, once.ErrNotStored) {
				t.Errorf("Do: %v", err)
			}
			s.Intercept(nil)
			_ = c.Close()
		})
	})
}

// afterEval is a driver that does something when a call has been answered.
type afterEval struct {
	*zamoktest.Server
	do func(driver.Call)
}

func (d *afterEval) Eval(ctx context.Context, call driver.Call) (any, error) {
	reply, err := d.Server.Eval(ctx, call)
	d.do(call)
	return reply, err
}

// Nothing gets through of a replay: what is stored stays.
func TestReplayUnknown(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			var th thing
			out, err := once.Do(t.Context(), on(t, s, policy), "pay", th.work(0, "paid", nil))
			wants(t, out, err, "paid", false, nil)
			c := s.Client()
			s.Intercept(func(call driver.Call) memory.Fault { return memory.Fault{DropReply: isSwap(call, c)} })
			out, err = once.Do(t.Context(), with(t, c, &once.Config{Policy: policy}), "pay", mustNotRun(t))
			wants(t, out, err, "", false, zamok.ErrUnknown)
			out, err = once.Do(t.Context(), on(t, s, policy), "pay", mustNotRun(t))
			wants(t, out, err, "paid", true, nil)
		})
	})
}

// The caller gives up while the begin is on its way.
func TestContextEndsBeforeTheRun(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		for _, fault := range []memory.Fault{{DelayReply: time.Second}, {Delay: time.Second}, {DropReply: true}} {
			bubble(t, func(t *testing.T, s *zamoktest.Server) {
				c := s.Client()
				onSwap(t, s, c, 1, fault)
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := once.Do(ctx, with(t, c, &once.Config{Policy: policy}), "pay", mustNotRun(t))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%+v: %v", fault, err)
				}
				pass(5 * time.Second)
				var th thing
				out, err := once.Do(t.Context(), on(t, s, policy), "pay", th.work(0, "paid", nil))
				wants(t, out, err, "paid", false, nil)
			})
		}
	})
}
