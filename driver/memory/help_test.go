package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
)

var four = []string{"lock", "queue", "fence", "readers"}

func call(name string, keys []string, args ...string) driver.Call {
	return driver.Call{Script: driver.NewScript(name, ""), Keys: keys, Args: args, Limit: time.Second}
}

func acquire(token, inbox string) driver.Call {
	return call("acquire", four, token, "10000", inbox, "0", "x")
}

func renew(token string) driver.Call { return call("renew", four[:1], token, "10000") }

// eval runs a call that must be answered, and returns the reply's first word.
func eval(t *testing.T, s *Server, c driver.Call) string {
	t.Helper()
	v, err := s.Eval(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Script.Name(), err)
	}
	return v.([]any)[0].(string)
}

// mustBe checks the value of the lock's token.
func mustBeHeldBy(t *testing.T, s *Server, token string) {
	t.Helper()
	v, _ := s.Get("lock")
	if len(v) < len(token) || v[:len(token)] != token || token == "" && v != "" {
		t.Fatalf("the lock is %q, want it held by %q", v, token)
	}
}

func mustTakeLimit(t *testing.T, err error, start time.Time, limit time.Duration) {
	t.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("err = %v, want a deadline", err)
	}
	var se *driver.ServerError
	if errors.As(err, &se) {
		t.Fatalf("%v is an error of the server", err)
	}
	if d := time.Since(start); d != limit {
		t.Fatalf("the call took %v, want %v", d, limit)
	}
}

// events collects what a subscription was told.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) handle(ev driver.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch ev.Kind {
	case driver.Subscribed:
		e.all = append(e.all, "subscribed")
	case driver.Broken:
		e.all = append(e.all, "broken")
	case driver.Message:
		e.all = append(e.all, ev.Payload)
	}
}

func (e *events) mustBe(t *testing.T, want ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.all, want) {
		t.Fatalf("events %q, want %q", e.all, want)
	}
}

// subscribe makes a subscription that ends before the test's bubble does.
func subscribe(t *testing.T, s *Server, channel string) *events {
	t.Helper()
	e := new(events)
	sub, err := s.Subscribe(t.Context(), time.Second, channel, e.handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sub.Close() })
	return e
}
