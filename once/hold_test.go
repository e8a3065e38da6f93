package once_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

// The caller gives up, and the function needs longer to stop than its lease would
// last without renewal. Nobody begins beside it, and its end is stored.
func TestRunOutlivesItsCaller(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			tired := errors.New("tired")
			ctx, cancel := context.WithCancelCause(t.Context())
			var th thing
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				out, err := once.Do(ctx, on(t, s, policy), "pay", func(ctx context.Context, _ once.Run) (string, error) {
					th.begin()
					defer th.end()
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), tired) || !errors.Is(ctx.Err(), context.Canceled) {
						t.Errorf("its context ended with %v, %v", ctx.Err(), context.Cause(ctx))
					}
					pass(time.Hour) // it cannot be stopped
					return "paid", nil
				})
				wants(t, out, err, "paid", false, nil)
			}()
			s.AwaitHeld("once/pay")
			cancel(tired)
			out, err := once.Do(t.Context(), on(t, s, policy), "pay", mustNotRun(t))
			wants(t, out, err, "paid", true, nil)
			<-ended
			if th.most.Load() != 1 {
				t.Errorf("%d runs at a time", th.most.Load())
			}
		})
	})
}

// What a function sees of its caller's context.
func TestContextOfTheFunction(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Minute)
		defer cancel()
		_, err := once.Do(ctx, on(t, s, once.GiveUp), "pay", func(work context.Context, run once.Run) (string, error) {
			want, _ := ctx.Deadline()
			if got, ok := work.Deadline(); !ok || !got.Equal(want) || work.Value(key{}) != "v" {
				t.Errorf("deadline %v, value %v", got, work.Value(key{}))
			}
			if l := zamok.LeaseFrom(work); l == nil || l.Fence() != run.Fence || l.Name() != "once/pay" {
				t.Errorf("lease %v", l)
			}
			child, cancel := context.WithCancel(work)
			defer cancel()
			<-child.Done()
			if !errors.Is(work.Err(), context.DeadlineExceeded) {
				t.Errorf("Err is %v", work.Err())
			}
			return "", once.Again(work.Err())
		})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, once.ErrNotStored) {
			t.Errorf("Do: %v", err)
		}
	})
}

func TestLeaseRunsOutDuringTheRun(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		c := s.Client()
		_, err := once.Do(t.Context(), with(t, c, &once.Config{Policy: once.Retry}), "pay", func(ctx context.Context, _ once.Run) (string, error) {
			s.Intercept(func(call driver.Call) memory.Fault { return memory.Fault{DropRequest: ofClient(call, c)} })
			pass(14 * time.Second) // the lease's context ends 1.5 s before its 15 s
			if ctx.Err() == nil || !errors.Is(context.Cause(ctx), zamok.ErrLost) {
				t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
			}
			return "paid", nil
		})
		if !errors.Is(err, once.ErrNotStored) || !errors.Is(err, zamok.ErrLost) {
			t.Errorf("Do: %v", err)
		}
	})
}

func TestLeaseIsLostDuringTheRun(t *testing.T) {
	losses := map[string]func(s *zamoktest.Server){
		"deleted": func(s *zamoktest.Server) { s.Lose("once/pay") },
		"broken":  func(s *zamoktest.Server) { s.BreakLock("once/pay", "maintenance") },
		"wiped":   func(s *zamoktest.Server) { s.Wipe() },
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, policy once.Policy) {
				bubble(t, func(t *testing.T, s *zamoktest.Server) {
					var first, second thing
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						out, err := once.Do(t.Context(), on(t, s, policy), "pay", first.work(time.Hour, "first", nil))
						wants(t, out, err, "", false, once.ErrNotStored)
						if !errors.Is(err, zamok.ErrLost) {
							t.Errorf("Do: %v", err)
						}
					}()
					s.AwaitHeld("once/pay")
					synctest.Wait()
					lose(s)
					<-ended
					out, err := once.Do(t.Context(), on(t, s, policy), "pay", second.work(time.Second, "second", nil))
					if policy == once.GiveUp && name != "wiped" {
						wants(t, out, err, "", false, once.ErrInterrupted)
						return
					}
					wants(t, out, err, "second", false, nil) // a wiped server knows of nothing
				})
			})
		})
	}
}

// The record alone is evicted. The lock tells that the run is still the one.
func TestRecordIsEvictedDuringTheRun(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			out, err := once.Do(t.Context(), on(t, s, policy), "pay", func(context.Context, once.Run) (string, error) {
				s.Del(recordKey("pay"))
				return "paid", nil
			})
			wants(t, out, err, "paid", false, nil)
			out, err = once.Do(t.Context(), on(t, s, policy), "pay", mustNotRun(t))
			wants(t, out, err, "paid", true, nil)
		})
	})
}

// A record goes back to what it was before the run, as a failover may have it, or
// forward to what only a later run can have written.
func TestRecordIsAnotherAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		o := on(t, s, once.Retry)
		var th thing
		_, err := once.Do(t.Context(), o, "pay", th.work(0, "", errors.New("not yet")))
		before, _ := s.Get(recordKey("pay"))
		out, err2 := once.Do(t.Context(), o, "pay", func(context.Context, once.Run) (string, error) {
			s.Set(recordKey("pay"), before, time.Hour)
			return "paid", nil
		})
		if wants(t, out, err2, "paid", false, nil); err == nil {
			t.Error("no failure")
		}
		other := `{"v":1,"state":"done","policy":"retry","attempt":9,"fence":9000000000000000,"token":"z1/h/1/r/1","value":"\"other\""}`
		_, err = once.Do(t.Context(), o, "pay2", func(context.Context, once.Run) (string, error) {
			s.Set(recordKey("pay2"), other, time.Hour)
			return "paid", nil
		})
		if got, _ := s.Get(recordKey("pay2")); !errors.Is(err, once.ErrNotStored) || got != other {
			t.Errorf("%v, and %q is stored", err, got)
		}
	})
}

// Where the policies of two callers differ, what was begun under GiveUp is not done
// again.
func TestPoliciesThatDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		for _, tt := range []struct {
			first, second once.Policy
			runs          bool
		}{
			{once.GiveUp, once.Retry, false},
			{once.Retry, once.GiveUp, false},
			{once.Retry, once.Retry, true},
		} {
			if err := on(t, s, once.Retry).Forget(t.Context(), "pay"); err != nil {
				t.Fatal(err)
			}
			var th thing
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err := once.Do(t.Context(), on(t, s, tt.first), "pay", th.work(time.Hour, "", nil))
				if !errors.Is(err, zamok.ErrLost) {
					t.Errorf("first: %v", err)
				}
			}()
			s.AwaitHeld("once/pay")
			synctest.Wait()
			s.Lose("once/pay")
			<-ended
			out, err := once.Do(t.Context(), on(t, s, tt.second), "pay", th.work(0, "paid", nil))
			if tt.runs {
				wants(t, out, err, "paid", false, nil)
			} else {
				wants(t, out, err, "", false, once.ErrInterrupted)
			}
		}
	})
}

// After ErrInterrupted somebody finds out, and says it.
func TestWayOnAfterAnInterruption(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		interrupt := func(key string) *once.Once {
			o := on(t, s, once.GiveUp)
			_, err := once.Do(t.Context(), o, key, func(context.Context, once.Run) (string, error) {
				s.Lose("once/" + key)
				return "", nil
			})
			if !errors.Is(err, once.ErrNotStored) {
				t.Errorf("Do: %v", err)
			}
			_, err = once.Do(t.Context(), o, key, mustNotRun(t))
			if !errors.Is(err, once.ErrInterrupted) {
				t.Errorf("Do: %v", err)
			}
			return o
		}
		o := interrupt("sent")
		out, err := once.Resolve(t.Context(), o, "sent", "<1@example>")
		if wants(t, out, err, "<1@example>", false, nil); out.Attempt != 1 {
			t.Errorf("attempt %d", out.Attempt)
		}
		out, err = once.Do(t.Context(), o, "sent", mustNotRun(t))
		wants(t, out, err, "<1@example>", true, nil)
		o = interrupt("not sent")
		if err := o.Forget(t.Context(), "not sent"); err != nil {
			t.Error(err)
		}
		var th thing
		out, err = once.Do(t.Context(), o, "not sent", th.work(0, "<2@example>", nil))
		wants(t, out, err, "<2@example>", false, nil)
	})
}
