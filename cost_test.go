package zamok_test

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/zamoktest"
)

// canned is a driver that replies from memory, so that what is counted and
// timed on it is the engine alone.
type canned struct {
	driver.Driver
	acquired, released []any
}

func newCanned() *canned {
	return &canned{
		acquired: []any{"granted", strconv.Itoa(1 << 50), int64(15000), int64(1 << 50), int64(0), int64(0), "", "0"},
		released: []any{"released", strconv.Itoa(1 << 50), int64(0), int64(0), int64(0), int64(0), ""},
	}
}

func (c *canned) Eval(_ context.Context, call driver.Call) (any, error) {
	if call.Script.Name() == "acquire" {
		return c.acquired, nil
	}
	return c.released, nil
}

func (c *canned) Clustered() bool { return false }

func (c *canned) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	return make([]driver.Result, len(calls))
}

func cycle(tb testing.TB, m *zamok.Mutex) {
	l, err := m.Lock(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.Release(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

func TestCycleAllocatesLittle(t *testing.T) {
	c, err := zamok.New(newCanned(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := c.Mutex("job", nil)
	if n := testing.AllocsPerRun(1000, func() { cycle(t, m) }); n > 6 {
		t.Errorf("%v allocations a cycle, want at most 6", n)
	}
}

// A lock that goroutines of one process pass on costs its lease, of 176 bytes, and in the
// mean little else: the race detector has pools forget one thing in four.
func TestPassingOnAllocatesTheLeaseAlone(t *testing.T) {
	c, err := zamok.New(newCanned(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := c.Mutex("job", nil)
	const goroutines, cycles = 8, 5000
	var all sync.WaitGroup
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range goroutines {
		all.Go(func() {
			for range cycles {
				l := lock(t, m)
				runtime.Gosched() // so that others want it, on any machine
				release(t, l)
			}
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / (goroutines * cycles); n > 400 {
		t.Errorf("%d bytes an acquisition, want at most 400", n)
	}
}

func TestALeaseNeedsNoGoroutine(t *testing.T) {
	bubble(t, &zamok.Config{TTL: 30 * time.Second}, func(t *testing.T, s *zamoktest.Server) { // with more it listens for operators
		c := s.Client()
		before := runtime.NumGoroutine()
		for i := range 1000 {
			if _, err := c.Mutex(strconv.Itoa(i), nil).TryLock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // what a timer started has ended
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines for 1,000 leases", after-before)
		}
	})
}

// pipelines counts those that pass, and single releases.
type pipelines struct {
	driver.Driver
	sent, calls, releases atomic.Int64
}

func (p *pipelines) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script.Name() == "release" {
		p.releases.Add(1)
	}
	return p.Driver.Eval(ctx, call)
}

func (p *pipelines) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	p.sent.Add(1)
	p.calls.Add(int64(len(calls)))
	return p.Driver.EvalAll(ctx, calls)
}

// Leases that were taken one by one are not renewed one by one.
func TestRenewalsGoTogether(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		d := &pipelines{Driver: s}
		c, err := zamok.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const leases = 2000
		for i := range leases {
			if _, err := c.Mutex(strconv.Itoa(i), nil).TryLock(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Second / leases)
		}
		pass(20 * time.Second)
		sent, calls := d.sent.Load(), d.calls.Load()
		if calls < 4*leases {
			t.Errorf("only %d renewals of %d leases", calls, leases)
		}
		if sent > calls/20 {
			t.Errorf("%d renewals went in %d pipelines", calls, sent)
		}
	})
}

// All leases of a client are lost when the server is silent for too long. They are
// given back together, or nobody else would get a word in.
func TestLeasesLostTogetherAreGivenBackTogether(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		d := &pipelines{Driver: s}
		c, err := zamok.New(d, &zamok.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const leases = 2000
		var all []*zamok.Lease
		for i := range leases {
			l, err := c.Mutex(strconv.Itoa(i), nil).TryLock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		s.Hang()
		for _, l := range all {
			lossOf(t, l)
		}
		before := runtime.NumGoroutine()
		pass(3 * time.Second) // their ends on the server come
		if more := runtime.NumGoroutine() - before; more > 100 {
			t.Errorf("%d goroutines more when %d leases are over", more, leases)
		}
		s.Unhang()
		release(t, lock(t, c.Mutex("new", nil)))
		pass(20 * time.Second)
		if n := d.releases.Load(); n != 1 {
			t.Errorf("%d releases were sent one by one", n-1)
		}
	})
}

// BenchmarkEngine is a cycle without a server: what the engine adds.
func BenchmarkEngine(b *testing.B) {
	c, err := zamok.New(newCanned(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	m := c.Mutex("job", nil)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, m)
	}
}

// BenchmarkHandOver is 64 goroutines that pass one lock on, without a server.
func BenchmarkHandOver(b *testing.B) {
	c, err := zamok.New(newCanned(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	m := c.Mutex("job", nil)
	b.ReportAllocs()
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	for range 64 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				cycle(b, m)
			}
		})
	}
	wg.Wait()
}
