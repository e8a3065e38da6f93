package itest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// trips is a driver that lists what was sent, a pipeline in one piece.
type trips struct {
	driver.Driver
	mu   sync.Mutex
	sent []string
}

func (d *trips) note(calls ...driver.Call) {
	var names []string
	for _, call := range calls {
		names = append(names, call.Script.Name())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if what := strings.Join(names, "+"); what != "announce" {
		d.sent = append(d.sent, what)
	}
}

func (d *trips) Eval(ctx context.Context, call driver.Call) (any, error) {
	d.note(call)
	return d.Driver.Eval(ctx, call)
}

func (d *trips) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	d.note(calls...)
	return d.Driver.EvalAll(ctx, calls)
}

// take returns what was sent since it was called last.
func (d *trips) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := strings.Join(d.sent, " ")
	d.sent = nil
	return all
}

func lockAll(t testing.TB, m *zamok.Multi) *zamok.Leases {
	t.Helper()
	h, err := m.Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	return h
}

func releaseAll(t testing.TB, h *zamok.Leases) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// layouts are where several names may lie.
var layouts = map[string]func(*testing.T) server{
	"standalone": func(t *testing.T) server { return startServer(t) },
	"cluster":    startShard,
}

func TestMultiRequests(t *testing.T) {
	const three = "release+release+release"
	each(t, func(t *testing.T, lib library) {
		for kind, start := range layouts {
			s := start(t)
			d := &trips{Driver: lib.new(t, s.URL())}
			c := clientOn(t, d, nil)
			// Once in its life a client learns that it talks to a cluster.
			releaseAll(t, lockAll(t, c.Multi([]string{"a", "b"}, nil)))
			d.take()
			for _, names := range [][]string{{"{x}c", "{x}a", "{x}b"}, {"c", "a", "b"}} {
				want := "multi_acquire"
				if kind == "cluster" && names[0] == "c" {
					want = "acquire acquire acquire"
				}
				for name, acquire := range map[string]func(context.Context) (*zamok.Leases, error){
					"Lock": c.Multi(names, nil).Lock, "TryLock": c.Multi(names, nil).TryLock,
				} {
					h, err := acquire(t.Context())
					if err != nil {
						t.Fatalf("%s %s: %v", kind, name, err)
					}
					if sent := d.take(); sent != want {
						t.Errorf("%s %s: sent %q, want %q", kind, name, sent, want)
					}
					for _, name := range names {
						if l := h.Lease(name); s.get(t, "lock:"+name) != value(l) {
							t.Errorf("%s: the key holds %q, the lease is %q", name, s.get(t, "lock:"+name), value(l))
						}
					}
					releaseAll(t, h)
					if sent := d.take(); sent != three {
						t.Errorf("%s %s: sent %q, want %q", kind, name, sent, three)
					}
				}
			}
		}
	})
}

// TestMultiOnAClusterClient: a library's client for clusters routes by the first key.
func TestMultiOnAClusterClient(t *testing.T) {
	t.Parallel()
	s := startShard(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}})
	defer rdb.Close()
	c := clientOn(t, zamokgoredis.New(rdb), nil)
	for range 3 {
		releaseAll(t, lockAll(t, c.Multi([]string{"a", "b", "c", "{b}d"}, nil)))
	}
}

// pairs is what those who take two of several names see.
type pairs struct {
	names []string
	in    map[string]*atomic.Int32
	done  atomic.Int32
}

func (p *pairs) visit(ctx context.Context, t *testing.T, c *zamok.Client) {
	i := rand.N(len(p.names))
	two := []string{p.names[i], p.names[(i+1+rand.N(len(p.names)-1))%len(p.names)]}
	err := c.Multi(two, nil).Do(ctx, func(ctx context.Context) error {
		for _, name := range two {
			if n := p.in[name].Add(1); n != 1 {
				t.Errorf("%d are in %s", n, name)
			}
		}
		span(rand.N(2 * time.Millisecond))
		for _, name := range two {
			p.in[name].Add(-1)
		}
		return ctx.Err()
	})
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if err == nil {
		p.done.Add(1)
	}
}

func TestCase40PairsInRandomOrder(t *testing.T) { inLayouts(t, pairsInRandomOrder) }

// inLayouts runs a case of several names on one server with every library, in a cluster
// of one shard too, and in every other setting, with the libraries in turn.
func inLayouts(t *testing.T, run func(t *testing.T, p place)) {
	each(t, func(t *testing.T, lib library) {
		for kind, start := range layouts {
			t.Run(kind, func(t *testing.T) {
				s := start(t)
				p := placeAt(target{URL: s.URL()}, s)
				p.libs = []library{lib}
				run(t, p)
			})
		}
	})
	elsewhere(t, run)
}

func pairsInRandomOrder(t *testing.T, at place) {
	clients, rounds := 20, 20
	if at.short {
		rounds = 5
	}
	p := &pairs{names: []string{"a", "b", "c", "d", "e", "f"}, in: map[string]*atomic.Int32{}}
	for _, name := range p.names {
		p.in[name] = new(atomic.Int32)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var all sync.WaitGroup
	client := at.clients(t)
	for range clients {
		c := client()
		all.Go(func() {
			for range rounds {
				p.visit(ctx, t, c)
			}
		})
	}
	all.Wait()
	if n := p.done.Load(); n != int32(clients*rounds) {
		t.Errorf("%d of %d had their turn", n, clients*rounds)
	}
	within(t, patience, "nothing is left", func() bool { return len(at.ofLocks(t)) == 0 })
}

// ofLocks returns the keys of locks and queues at all nodes.
func (p place) ofLocks(t testing.TB) (keys []string) {
	for _, s := range p.nodes {
		keys = append(keys, s.ofLocks(t)...)
	}
	return keys
}

// ofLocks returns the keys of locks and queues.
func (s server) ofLocks(t testing.TB) []string {
	return slices.DeleteFunc(s.keys(t), func(k string) bool {
		return !strings.HasPrefix(k, "lock:") && !strings.HasPrefix(k, "zamok:queue:")
	})
}

// Cancelled while it has one name and waits for the next, zero keys are left.
func TestCase40CancelInTheMiddle(t *testing.T) { inLayouts(t, cancelInTheMiddle) }

func cancelInTheMiddle(t *testing.T, p place) {
	other := tryLock(t, p.client(t, 0, nil).Mutex("b", nil))
	waits := make(chan struct{}, 100)
	trace := &zamok.Trace{Waiting: func(zamok.WaitingInfo) { waits <- struct{}{} }}
	m := p.client(t, 1, &zamok.Config{Trace: trace}).Multi([]string{"c", "b", "a"}, nil)
	for range 10 {
		for len(waits) > 0 {
			<-waits
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := m.Lock(ctx)
			result <- err
		}()
		within(t, patience, "it waits for b", func() bool { return p.waiting(t, "b") == 1 })
		receive(t, waits, "answer that it waits") // so that it knows who has it
		if !p.at("lock:a").has(t, "lock:a") || p.at("lock:c").has(t, "lock:c") {
			t.Errorf("keys %q", p.ofLocks(t))
		}
		cancel()
		err := receive(t, result, "error")
		promptly(t, 100*time.Millisecond, "zero keys", func() bool { return slices.Equal(p.ofLocks(t), []string{"lock:b"}) })
		var held *zamok.HeldError
		// It may have been cancelled before it heard who holds b.
		if !errors.Is(err, context.Canceled) || errors.As(err, &held) && held.Name != "b" {
			t.Error(err)
		}
	}
	release(t, other)
}

// The reply to the one request is lost, with and without another try.
func TestMultiLostReply(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		p := drivertest.StartProxy(t, s.Addr())
		c := lib.client(t, p.URL(), nil)
		names := []string{"a", "b", "c"}
		releaseAll(t, lockAll(t, c.Multi(names, nil)))

		cut := p.CutAfter(mutexKind.calls("a"))
		h := lockAll(t, c.Multi(names, nil))
		receive(t, cut.Fired(), "cut")
		for _, name := range names {
			if s.get(t, "lock:"+name) != value(h.Lease(name)) {
				t.Errorf("%s holds %q, the lease is %q", name, s.get(t, "lock:"+name), value(h.Lease(name)))
			}
		}
		releaseAll(t, h)

		p.Refuse()
		cut = p.CutAfter(mutexKind.calls("a"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 1)
		go func() {
			_, err := c.Multi(names, nil).Lock(ctx)
			result <- err
		}()
		receive(t, cut.Fired(), "cut")
		if len(s.ofLocks(t)) != 3 {
			t.Fatalf("the script was not run, so this shows nothing: %q", s.ofLocks(t))
		}
		cancel()
		if err := receive(t, result, "error"); !errors.Is(err, context.Canceled) || errors.Is(err, zamok.ErrHeld) {
			t.Errorf("err = %v", err)
		}
		p.Accept()
		promptly(t, time.Second, "nothing is left", func() bool { return len(s.ofLocks(t)) == 0 })
	})
}

// Who waits for one of the names comes in the order of arrival, whether it wants
// others too or not.
func TestMultiKeepsTheQueue(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		first := tryLock(t, lib.client(t, s.URL(), nil).Mutex("b", nil))
		var order []string
		var all sync.WaitGroup
		for i := range 12 {
			c := lib.client(t, s.URL(), nil)
			all.Go(func() {
				do := c.Mutex("b", nil).Do
				if i%2 == 0 {
					do = c.Multi([]string{"b", fmt.Sprint("z", i)}, nil).Do
				}
				if err := do(t.Context(), func(context.Context) error {
					order = append(order, fmt.Sprint(i)) // guarded by b
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			within(t, patience, "it waits", func() bool { return s.waiting(t, "b") == i+1 })
		}
		release(t, first)
		all.Wait()
		if got := strings.Join(order, " "); got != "0 1 2 3 4 5 6 7 8 9 10 11" {
			t.Errorf("the order is %s", got)
		}
	})
}

// One lost lock ends the whole, by its name; the others are freed by Release.
func TestMultiLosesOne(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startServer(t)
		c := lib.client(t, s.URL(), &zamok.Config{TTL: lossTTL})
		for _, name := range []string{"a", "b", "c"} {
			h := lockAll(t, c.Multi([]string{"a", "b", "c"}, nil))
			s.MustDo("DEL", "lock:"+name)
			receive(t, h.Context().Done(), "end of the context")
			var lost *zamok.LostError
			if !errors.As(context.Cause(h.Context()), &lost) || lost.Name != name || lost.Reason != zamok.LostDeleted {
				t.Errorf("%s: the cause is %v", name, context.Cause(h.Context()))
			}
			if err := h.Release(t.Context()); !errors.As(err, &lost) || lost.Name != name {
				t.Errorf("%s: Release: %v", name, err)
			}
			if left := s.ofLocks(t); len(left) > 0 {
				t.Errorf("%s: left: %q", name, left)
			}
			if err := h.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("%s: Release again: %v", name, err)
			}
		}
	})
}
