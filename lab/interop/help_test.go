package interop

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
)

const (
	// factor is by how much a duration may be longer here than what a user should
	// see on a quiet machine.
	factor = 5
	// patience is for what must come and has no time of its own.
	patience = 30 * time.Second
	// poll is how often zamok's first waiter asks while another program holds.
	poll = 250 * time.Millisecond
	// rounding is by how much a PTTL may be off.
	rounding = 2 * time.Millisecond
)

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

func (s server) pttl(t testing.TB, key string) time.Duration {
	t.Helper()
	ms, _ := s.MustDo("PTTL", key).(int64)
	return time.Duration(ms) * time.Millisecond
}

// waiting says how many of zamok's stand in the queue of a lock.
func (s server) waiting(t testing.TB, key string) int {
	t.Helper()
	n, _ := s.MustDo("ZCARD", "zamok:queue:{"+key+"}").(int64)
	return int(n)
}

// redis is a go-redis client as a user would make it.
func (s server) redis(t testing.TB) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// zamok is a client of ours.
func (s server) zamok(t testing.TB, cfg zamok.Config) *zamok.Client {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := zamok.New(zamokgoredis.New(s.redis(t)), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// shared is a lock of a client of its own with the other library's key.
func (s server) shared(t testing.TB, key string, ttl time.Duration) *zamok.Mutex {
	t.Helper()
	return s.zamok(t, zamok.Config{}).Mutex("job", &zamok.MutexConfig{Key: key, TTL: ttl})
}

func tryLock(t testing.TB, m *zamok.Mutex) *zamok.Lease {
	t.Helper()
	l, err := m.TryLock(t.Context())
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	return l
}

// lock waits for a lease.
func lock(t testing.TB, m *zamok.Mutex) *zamok.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel) // the lease ends with it
	l, err := m.Lock(ctx)
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return l
}

func release(t testing.TB, l *zamok.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// heldByOther wants the lock to be held by a program that is not ours, with that
// value.
func heldByOther(t testing.TB, m *zamok.Mutex, value string) *zamok.HeldError {
	t.Helper()
	_, err := m.TryLock(t.Context())
	var held *zamok.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("TryLock: %v, want a *HeldError", err)
	}
	if !held.Holder.Foreign || held.Holder.Token != value || held.Fence != 0 {
		t.Errorf("the holder is %+v with fence %d, want a foreign one with the value %q", held.Holder, held.Fence, value)
	}
	return held
}

// lostTo wants the error of a lease that another program's value took.
func lostTo(t testing.TB, what string, err error, value string) {
	t.Helper()
	var lost *zamok.LostError
	if !errors.As(err, &lost) || lost.Reason != zamok.LostTaken || !lost.By.Foreign || lost.By.Token != value {
		t.Errorf("%s: %v, want it lost to a foreign holder with the value %q", what, err, value)
	}
}

// got is what a call of Lock in another goroutine came to.
type got struct {
	lease *zamok.Lease
	err   error
	at    time.Time
}

// goLock calls Lock in another goroutine and returns when it stands in the queue.
func goLock(t testing.TB, s server, m *zamok.Mutex, key string) <-chan got {
	t.Helper()
	before := s.waiting(t, key)
	ch := make(chan got, 1)
	go func() {
		l, err := m.Lock(t.Context())
		ch <- got{l, err, time.Now()}
	}()
	within(t, patience, "it waits", func() bool { return s.waiting(t, key) > before })
	return ch
}

// granted waits for the lease of a Lock.
func granted(t testing.TB, ch <-chan got) got {
	t.Helper()
	g := receive(t, ch, "lease")
	if g.err != nil {
		t.Fatalf("Lock: %v", g.err)
	}
	return g
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

// within looks again and again and fails the test when it does not come true.
func within(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	limit := time.After(d)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// span lets real time pass: for what says how long something lasts.
func span(d time.Duration) { <-time.After(d) }
