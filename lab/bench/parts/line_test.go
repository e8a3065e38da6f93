package parts

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// BenchmarkLine is 64 goroutines of one process that want one lock, alone or while
// somebody elsewhere wants it too, whose waits it reports.
func BenchmarkLine(b *testing.B) {
	for _, lib := range libraries {
		for _, passing := range []time.Duration{5 * time.Millisecond, -1} {
			for _, elsewhere := range []int{0, 1} {
				b.Run(fmt.Sprintf("%s/HandOver=%v/elsewhere=%d", lib.name, max(passing, 0), elsewhere), func(b *testing.B) {
					addr := drivertest.StartServer(b).Addr()
					l := &lineBench{}
					d, _ := lib.open(b, addr)
					m := inLine(b, d, passing)
					d, _ = lib.open(b, addr)
					other := inLine(b, d, passing)
					l.run(b, m, other, elsewhere)
				})
			}
		}
	}
}

func inLine(b *testing.B, d driver.Driver, passing time.Duration) *zamok.Mutex {
	b.Helper()
	c, err := zamok.New(d, &zamok.Config{Logger: slog.New(slog.DiscardHandler), HandOver: passing})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c.Mutex("line", nil)
}

type lineBench struct {
	fence int64 // guarded by the lock
	waits []time.Duration
}

func (l *lineBench) run(b *testing.B, m, other *zamok.Mutex, elsewhere int) {
	ctx, cancel := context.WithCancel(context.Background())
	var rest sync.WaitGroup
	for range elsewhere {
		rest.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				if l.cycle(ctx, b, other) {
					l.waits = append(l.waits, time.Since(start))
				}
			}
		})
	}
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for range 64 {
		all.Go(func() {
			for left.Add(-1) >= 0 && l.cycle(ctx, b, m) {
			}
		})
	}
	all.Wait()
	b.StopTimer()
	cancel()
	rest.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acquisitions/s")
	if n := len(l.waits); n > 0 {
		slices.Sort(l.waits)
		b.ReportMetric(float64(l.waits[n/2].Microseconds())/1000, "ms/wait-elsewhere")
		b.ReportMetric(float64(l.waits[n-1].Microseconds())/1000, "ms/longest")
	}
}

func (l *lineBench) cycle(ctx context.Context, b *testing.B, m *zamok.Mutex) bool {
	lease, err := m.Lock(ctx)
	if err != nil {
		if ctx.Err() == nil {
			b.Error(err)
		}
		return false
	}
	if lease.Fence() <= l.fence {
		b.Errorf("fence %d after %d", lease.Fence(), l.fence)
	}
	l.fence = lease.Fence()
	if err := lease.Release(ctx); err != nil {
		b.Error(err)
		return false
	}
	return true
}
