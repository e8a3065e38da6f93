package once_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/zamoktest"
)

func TestOutcomeIsStoredAndReplayed(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			var th thing
			first, err := once.Do(t.Context(), on(t, s, policy), "mail", th.work(time.Hour, "<1@example>", nil))
			wants(t, first, err, "<1@example>", false, nil)
			second, err := once.Do(t.Context(), on(t, s, policy), "mail", mustNotRun(t))
			wants(t, second, err, "<1@example>", true, nil)
			if first.ID != second.ID || first.ID == "" || first.Attempt != 1 || second.Attempt != 1 {
				t.Errorf("%+v, then %+v", first, second)
			}
			if ttl, _ := s.TTL(recordKey("mail")); ttl != 24*time.Hour {
				t.Errorf("it is remembered for %v, want 24h", ttl)
			}
			if _, err := once.Do(t.Context(), on(t, s, policy), "mail2", th.work(0, "", nil)); err != nil || th.begun.Load() != 2 {
				t.Errorf("another key: %v, %d runs", err, th.begun.Load())
			}
		})
	})
}

func TestWaitersGetTheOutcome(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			var th thing
			var all sync.WaitGroup
			for range 20 {
				o := on(t, s, policy)
				all.Go(func() {
					out, err := once.Do(t.Context(), o, "pay", th.work(time.Minute, "paid", nil))
					wants(t, out, err, "paid", out.Replayed, nil)
				})
			}
			all.Wait()
			if th.begun.Load() != 1 {
				t.Errorf("%d runs", th.begun.Load())
			}
		})
	})
}

func TestWaitEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		var th thing
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := once.Do(t.Context(), on(t, s, once.Retry), "pay", th.work(time.Minute, "paid", nil)); err != nil {
				t.Error(err)
			}
		})
		s.AwaitHeld("once/pay")
		o := with(t, s.Client(), &once.Config{Policy: once.Retry, Wait: 5 * time.Second})
		_, err := once.Do(t.Context(), o, "pay", mustNotRun(t))
		var held *zamok.HeldError
		if !errors.As(err, &held) || held.Waited != 5*time.Second {
			t.Errorf("Wait: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = once.Do(ctx, on(t, s, once.Retry), "pay", mustNotRun(t))
		if !errors.Is(err, zamok.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "canceled") {
			t.Errorf("a deadline: %v", err)
		}
		all.Wait()
	})
}

func TestFailure(t *testing.T) {
	bad := errors.New("card refused")
	for _, tt := range []struct {
		name   string
		policy once.Policy
		err    error
		again  bool
	}{
		{"plain", once.GiveUp, bad, false},
		{"plain", once.Retry, bad, true},
		{"again", once.GiveUp, once.Again(bad), true},
		{"again", once.Retry, once.Again(bad), true},
		{"final", once.GiveUp, once.Final(bad), false},
		{"final", once.Retry, once.Final(bad), false},
	} {
		t.Run(tt.name+"/"+string(tt.policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *zamoktest.Server) {
				var th thing
				out, err := once.Do(t.Context(), on(t, s, tt.policy), "pay", th.work(0, "", tt.err))
				if wants(t, out, err, "", false, bad); err.Error() != bad.Error() {
					t.Errorf("the caller gets %q", err)
				}
				out, err = once.Do(t.Context(), on(t, s, tt.policy), "pay", th.work(0, "paid", nil))
				if tt.again {
					wants(t, out, err, "paid", false, nil)
					if out.Attempt != 2 {
						t.Errorf("attempt %d, want 2", out.Attempt)
					}
					return
				}
				wants(t, out, err, "", false, once.ErrFailed)
				var failure *once.FailedError
				if !errors.As(err, &failure) || failure.Text != "card refused" || failure.Attempt != 1 || th.begun.Load() != 1 {
					t.Errorf("%+v, %d runs", failure, th.begun.Load())
				}
			})
		})
	}
	if once.Again(nil) != nil || once.Final(nil) != nil {
		t.Error("no error has become one")
	}
}

// A function that panics, or ends its goroutine as t.FailNow does, has failed.
func TestFunctionThatDoesNotReturn(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		for name, end := range map[string]func(){"panic": func() { panic("oh") }, "exit": runtime.Goexit} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *zamoktest.Server) {
					ended := make(chan struct{})
					o := on(t, s, policy)
					go func() {
						defer close(ended)
						defer func() { _ = recover() }()
						_, _ = once.Do(t.Context(), o, "pay", func(context.Context, once.Run) (string, error) {
							end()
							return "", nil
						})
						t.Error("Do returned")
					}()
					<-ended
					if s.Held("once/pay") {
						t.Error("the lock is left")
					}
					out, err := once.Do(t.Context(), on(t, s, policy), "pay", func(context.Context, once.Run) (string, error) { return "paid", nil })
					if policy == once.Retry {
						wants(t, out, err, "paid", false, nil)
					} else {
						wants(t, out, err, "", false, once.ErrFailed)
					}
				})
			})
		}
	})
}

func TestInputMismatch(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			var th thing
			o := on(t, s, policy)
			a, b := o.WithInput([]byte("10 EUR")), o.WithInput([]byte("90 EUR"))
			if _, err := once.Do(t.Context(), a, "pay", th.work(0, "", once.Again(errors.New("later")))); err == nil {
				t.Fatal("no error")
			}
			out, err := once.Do(t.Context(), b, "pay", mustNotRun(t))
			wants(t, out, err, "", false, once.ErrMismatch)
			// The input stays known when a call that has none runs it.
			out, err = once.Do(t.Context(), o, "pay", th.work(0, "paid", nil))
			wants(t, out, err, "paid", false, nil)
			out, err = once.Do(t.Context(), b, "pay", mustNotRun(t))
			wants(t, out, err, "", false, once.ErrMismatch)
			_, err = once.Resolve(t.Context(), b, "pay", "not paid")
			wants(t, once.Outcome[string]{}, err, "", false, once.ErrMismatch)
			out, err = once.Do(t.Context(), a, "pay", mustNotRun(t))
			wants(t, out, err, "paid", true, nil)
			if text, _ := s.Get(recordKey("pay")); strings.Contains(text, "EUR") {
				t.Errorf("the input itself is stored: %s", text)
			}
			if !strings.Contains(once.ErrMismatch.Error(), "input") || !strings.Contains((&once.MismatchError{Key: "pay"}).Error(), `"pay"`) {
				t.Error("the errors do not say what is wrong")
			}
			out, err = once.Do(t.Context(), o, "free", th.work(0, "1", nil))
			wants(t, out, err, "1", false, nil)
			out, err = once.Do(t.Context(), a, "free", mustNotRun(t)) // nothing to compare with
			wants(t, out, err, "1", true, nil)
		})
	})
}

func TestRetentionEnds(t *testing.T) {
	bothPolicies(t, func(t *testing.T, policy once.Policy) {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			o := with(t, s.Client(), &once.Config{Policy: policy, Retention: time.Hour})
			var th thing
			first, err := once.Do(t.Context(), o, "pay", th.work(0, "1", nil))
			wants(t, first, err, "1", false, nil)
			pass(time.Hour - time.Millisecond)
			out, err := once.Do(t.Context(), o, "pay", mustNotRun(t))
			wants(t, out, err, "1", true, nil)
			pass(2 * time.Millisecond)
			out, err = once.Do(t.Context(), o, "pay", th.work(0, "2", nil))
			wants(t, out, err, "2", false, nil)
			if out.ID != first.ID {
				t.Error("the id of the key has changed")
			}
		})
	})
}

// A run is remembered for the retention time after it crashed, however long it
// lasted before, because it may last no longer than that.
func TestLongRun(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		o := with(t, s.Client(), &once.Config{Policy: once.GiveUp, Retention: time.Hour})
		var th thing
		out, err := once.Do(t.Context(), o, "pay", th.work(2*time.Hour, "paid", nil))
		wants(t, out, err, "", false, once.ErrNotStored)
		var lost *zamok.LostError
		if !errors.As(err, &lost) || lost.Reason != zamok.LostMaxHold {
			t.Errorf("it ended with %v", err)
		}
		pass(time.Hour - time.Minute)
		out, err = once.Do(t.Context(), o, "pay", mustNotRun(t))
		wants(t, out, err, "", false, once.ErrInterrupted)
	})
}

func TestTheIDBelongsToTheKey(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		bubble(t, func(t *testing.T, s *zamoktest.Server) {
			o := on(t, s, once.Retry)
			fail := errors.New("not yet")
			var last string
			for attempt := 1; attempt <= 3; attempt++ {
				_, err := once.Do(t.Context(), o, "pay", func(ctx context.Context, run once.Run) (string, error) {
					if run.Attempt != attempt || run.Key != "pay" || last != "" && run.ID != last || run.Fence != zamok.LeaseFrom(ctx).Fence() {
						t.Errorf("attempt %d: %+v", attempt, run)
					}
					last = run.ID
					return "", fail
				})
				if !errors.Is(err, fail) {
					t.Errorf("attempt %d: %v", attempt, err)
				}
			}
			ids[last] = true
			other, _ := once.Do(t.Context(), o, "pay2", func(context.Context, once.Run) (string, error) { return "", nil })
			if len(last) != 36 || last[14] != '8' || other.ID == last {
				t.Errorf("ids %q, %q", last, other.ID)
			}
		})
	}
	if len(ids) != 1 {
		t.Errorf("a server that has lost its data has other ids: %v", ids)
	}
}

// Everything that is not a string, and what is no JSON.
func TestOutcomeTypes(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		type receipt struct {
			ID    string
			Cents int
		}
		o := on(t, s, once.Retry)
		want := receipt{"r<1>", 1000}
		for i := range 2 {
			out, err := once.Do(t.Context(), o, "struct", func(context.Context, once.Run) (*receipt, error) { return &want, nil })
			if err != nil || out.Value == nil || *out.Value != want || out.Replayed != (i == 1) {
				t.Errorf("%+v, %v", out, err)
			}
		}
		if _, err := once.Do(t.Context(), o, "struct", func(context.Context, once.Run) (int, error) { return 1, nil }); err == nil || !strings.Contains(err.Error(), "no int") {
			t.Errorf("an outcome of another type: %v", err)
		}
		var bad *zamok.ConfigError
		if _, err := once.Do(t.Context(), o, "chan", func(context.Context, once.Run) (chan int, error) { return nil, nil }); !errors.As(err, &bad) {
			t.Errorf("a channel: %v", err)
		}
		if _, err := once.Resolve(t.Context(), o, "nan", math.NaN()); !errors.As(err, &bad) {
			t.Errorf("Resolve of no JSON: %v", err)
		}
		nan := func(context.Context, once.Run) (float64, error) { return math.NaN(), nil }
		out, err := once.Do(t.Context(), o, "nan", nan)
		if err == nil || !math.IsNaN(out.Value) || !strings.Contains(err.Error(), "is done") {
			t.Errorf("no JSON: %v, %v", out, err)
		}
		// It was done, so it is not done again, although the policy is Retry.
		if _, err := once.Do(t.Context(), o, "nan", nan); !errors.Is(err, once.ErrFailed) {
			t.Errorf("the next call: %v", err)
		}
	})
}

// cost counts the requests of a call, without those in which a client says who it
// is.
func cost(s *zamoktest.Server, call func()) int {
	count := func() (n int) {
		for name, calls := range s.Calls() {
			if name != "announce" {
				n += calls
			}
		}
		return n
	}
	before := count()
	call()
	return count() - before
}

func TestCost(t *testing.T) {
	bubble(t, func(t *testing.T, s *zamoktest.Server) {
		o, j, now := on(t, s, once.GiveUp), job(t, s, nil), time.Now()
		var th thing
		do := func() {
			if _, err := once.Do(t.Context(), o, "pay", th.work(0, "", nil)); err != nil {
				t.Error(err)
			}
		}
		tick := func() { _ = once.Tick(t.Context(), j, now, th.tick(0)) }
		for i, tt := range []struct {
			call func()
			want int
		}{{do, 4}, {do, 3}, {tick, 6}, {tick, 3}} {
			if n := cost(s, tt.call); n != tt.want {
				t.Errorf("call %d took %d requests, want %d", i, n, tt.want)
			}
		}
		if th.begun.Load() != 2 {
			t.Errorf("%d runs", th.begun.Load())
		}
	})
}
