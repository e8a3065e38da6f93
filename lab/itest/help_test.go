package itest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// factor is by how much a duration may be longer here than what a user should
// see on a quiet machine.
const factor = 5

// stalls is watched from the first test to the last.
var stalls *drivertest.Stalls

// counted is what a duration is worth: the time that this machine let nobody work
// is not counted.
func counted(from, till time.Time) time.Duration {
	return till.Sub(from) - stalls.Between(from, till)
}

// slow says that it took longer than d, with the factor.
func slow(from, till time.Time, d time.Duration) bool { return counted(from, till) > factor*d }

// starved says that this machine let nobody work for most of a time: then a call
// may have had no answer although everybody was there.
func starved(from, till time.Time) bool { return stalls.Between(from, till) > till.Sub(from)/2 }

// patience is for what must come and has no time of its own.
const patience = time.Minute

// each runs a case with every library, side by side.
func each(t *testing.T, run func(t *testing.T, lib library)) {
	t.Parallel()
	for _, lib := range libraries {
		t.Run(lib.name, func(t *testing.T) {
			t.Parallel()
			run(t, lib)
		})
	}
}

// client makes a zamok client on a library client of its own.
func (lib library) client(t testing.TB, url string, cfg *zamok.Config) *zamok.Client {
	t.Helper()
	return clientOn(t, lib.new(t, url), cfg)
}

func clientOn(t testing.TB, d driver.Driver, cfg *zamok.Config) *zamok.Client {
	t.Helper()
	full := zamok.Config{Logger: slog.New(slog.DiscardHandler)}
	if cfg != nil {
		full = *cfg
		full.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := zamok.New(d, &full)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func lock(t testing.TB, m taker) *zamok.Lease {
	t.Helper()
	g := receive(t, goLock(t.Context(), m), "lease")
	if g.err != nil {
		t.Fatalf("Lock: %v", g.err)
	}
	return g.lease
}

func tryLock(t testing.TB, m taker) *zamok.Lease {
	t.Helper()
	l, err := m.TryLock(t.Context())
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	return l
}

func release(t testing.TB, l *zamok.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// lossOf waits until the lease's context ends and returns why.
func lossOf(t testing.TB, l *zamok.Lease) *zamok.LostError {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(patience):
		t.Fatalf("the lease's context does not end")
	}
	var lost *zamok.LostError
	if err := context.Cause(l.Context()); !errors.As(err, &lost) || !errors.Is(err, zamok.ErrLost) {
		t.Fatalf("the context ended with %v, want a *LostError", err)
	}
	return lost
}

// got is what a call of Lock in another goroutine came to.
type got struct {
	lease *zamok.Lease
	err   error
	at    time.Time
}

// goLock calls Lock in another goroutine.
func goLock(ctx context.Context, m taker) <-chan got {
	ch := make(chan got, 1)
	go func() {
		l, err := m.Lock(ctx)
		ch <- got{l, err, time.Now()}
	}()
	return ch
}

// receive waits for a value that must come.
func receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("not reached")
	}
}

// await looks again and again, for at most d, and says whether it came true.
func await(d time.Duration, cond func() bool) bool {
	limit := time.After(d)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit:
			return cond()
		}
	}
	return true
}

// within fails the test when it does not come true in d.
func within(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	if !await(d, cond) {
		t.Fatalf("not within %v: %s", d, what)
	}
}

// promptly fails the test when it does not come true in d, with the factor.
func promptly(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	start := time.Now()
	within(t, patience, what, cond)
	if took := time.Since(start); slow(start, time.Now(), d) {
		t.Errorf("only after %v: %s", took, what)
	}
}

// shut closes the client, which waits up to 2 s for what goes on behind. It fails
// the test when that was not over, but reports false when this machine is proven
// to have withheld most of that time.
func shut(t *testing.T, c *zamok.Client) (all bool) {
	t.Helper()
	start := time.Now()
	err := c.Close()
	if end := time.Now(); err != nil && !starved(start, end) {
		t.Errorf("Close after %v: %v", end.Sub(start), err)
	} else if err != nil {
		t.Logf("Close: %v; this machine stood still for %v of %v", err, stalls.Between(start, end), end.Sub(start))
	}
	return err == nil
}

// undisturbed repeats a round that says that it could not shut its client, on a
// machine that had no time for it.
func undisturbed(t *testing.T, round func() (all bool)) {
	t.Helper()
	for range 5 {
		if round() || t.Failed() {
			return
		}
	}
	t.Fatal("this machine has no time for this test")
}

// span lets real time pass: for a case that says how long something lasts.
func span(d time.Duration) { <-time.After(d) }

// server is a real server with what tests ask it.
type server struct{ *drivertest.Server }

func startServer(t testing.TB, args ...string) server {
	t.Helper()
	return server{drivertest.StartServer(t, args...)}
}

func (s server) get(t testing.TB, key string) string {
	t.Helper()
	v, _ := s.MustDo("GET", key).(string)
	return v
}

func (s server) has(t testing.TB, key string) bool {
	t.Helper()
	return s.MustDo("EXISTS", key) == int64(1)
}

func (s server) pttl(t testing.TB, key string) time.Duration {
	t.Helper()
	ms, _ := s.MustDo("PTTL", key).(int64)
	return time.Duration(ms) * time.Millisecond
}

// queue returns the name of the queue of a lock.
func queue(name string) string { return mutexKind.queue(name) }

// waiting says how many stand in the queue of a lock.
func (s server) waiting(t testing.TB, name string) int {
	t.Helper()
	return mutexKind.waiting(t, s, name)
}

// keys returns all keys.
func (s server) keys(t testing.TB) []string {
	t.Helper()
	list, _ := s.MustDo("KEYS", "*").([]any)
	var keys []string
	for _, k := range list {
		keys = append(keys, k.(string))
	}
	return keys
}

func isCall(args []string) bool {
	return drivertest.Command("EVALSHA", "EVAL")(args)
}

func number(t testing.TB, env string, otherwise int) int {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

func duration(t testing.TB, env string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return d
}

// value is what a lock's key must hold under a lease.
func value(l *zamok.Lease) string { return fmt.Sprintf("%s:%d", l.Token(), l.Fence()) }

// mustNotRun is the function of a Do that is refused.
func mustNotRun(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the function ran without the lock")
		return nil
	}
}
