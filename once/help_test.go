package once_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/once/oncetest"
	"github.com/zamok-go/zamok/zamoktest"
)

// bubble runs a test in virtual time. At its end no goroutine may be left.
func bubble(t *testing.T, f func(t *testing.T, s *zamoktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := zamoktest.New(t, nil)
		oncetest.Define(s.Server)
		f(t, s)
		everyRecordEnds(t, s)
	})
}

// everyRecordEnds: what package once remembers has a TTL.
func everyRecordEnds(t *testing.T, s *zamoktest.Server) {
	t.Helper()
	for _, key := range s.Keys() {
		if ttl, ok := s.TTL(key); strings.HasPrefix(key, "zamok:once:") && (!ok || ttl <= 0) {
			t.Errorf("%s has no TTL", key)
		}
	}
}

func bothPolicies(t *testing.T, f func(t *testing.T, policy once.Policy)) {
	t.Helper()
	for _, policy := range []once.Policy{once.GiveUp, once.Retry} {
		t.Run(string(policy), func(t *testing.T) { f(t, policy) })
	}
}

// on makes an Once on a new client, which is to the others as another process.
func on(t *testing.T, s *zamoktest.Server, policy once.Policy) *once.Once {
	t.Helper()
	return with(t, s.Client(), &once.Config{Policy: policy})
}

func with(t *testing.T, c *zamok.Client, cfg *once.Config) *once.Once {
	t.Helper()
	o, err := once.New(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// recordKey is where the end of a key is remembered.
func recordKey(key string) string { return "zamok:once:{lock:once/" + key + "}" }

// thing counts how often it is done, and how often at a time.
type thing struct {
	begun, at, most, ended atomic.Int64
}

func (th *thing) begin() {
	th.begun.Add(1)
	th.most.Store(max(th.most.Load(), th.at.Add(1)))
}

func (th *thing) end() {
	th.at.Add(-1)
	th.ended.Add(1)
}

// work is a function that takes d and returns a value, or fails with err.
func (th *thing) work(d time.Duration, value string, err error) func(context.Context, once.Run) (string, error) {
	return func(ctx context.Context, _ once.Run) (string, error) {
		th.begin()
		defer th.end()
		select {
		case <-time.After(d):
			return value, err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// mustNotRun is a function that fails the test.
func mustNotRun(t *testing.T) func(context.Context, once.Run) (string, error) {
	return func(context.Context, once.Run) (string, error) {
		t.Error("it ran")
		return "", nil
	}
}

// wants checks what a call came to. want is the error, by errors.Is.
func wants(t *testing.T, out once.Outcome[string], err error, value string, replayed bool, want error) {
	t.Helper()
	if out.Value != value || out.Replayed != replayed || !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("got %q, replayed %v, %v; want %q, %v, %v", out.Value, out.Replayed, err, value, replayed, want)
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// isSwap says whether a call of that client is about a record.
func isSwap(call driver.Call, c *zamok.Client) bool {
	return call.Script.Name() == "guard:zamok.once" && ofClient(call, c)
}

func ofClient(call driver.Call, c *zamok.Client) bool {
	return len(call.Args) > 0 && strings.HasPrefix(call.Args[0], "z1/"+c.ID()+"/")
}

// onSwap has one fault happen to the nth request of the client that is about a
// record, from 1. The test fails if there is no such request.
func onSwap(t *testing.T, s *zamoktest.Server, c *zamok.Client, nth int64, fault memory.Fault) {
	var n atomic.Int64
	t.Cleanup(func() {
		if n.Load() < nth {
			t.Errorf("%d requests were about a record, and no fault happened", n.Load())
		}
	})
	s.Intercept(func(call driver.Call) memory.Fault {
		if isSwap(call, c) && n.Add(1) == nth {
			return fault
		}
		return memory.Fault{}
	})
}
