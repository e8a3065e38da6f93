package zamok_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/memory"
)

// lockMetrics counts what a metrics library would export. The hooks run in the
// goroutines concerned, so they share with care.
type lockMetrics struct {
	mu     sync.Mutex
	counts map[string]int
}

func (m *lockMetrics) add(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[what]++
}

func (m *lockMetrics) trace(waiting chan<- struct{}) *zamok.Trace {
	return &zamok.Trace{
		Waiting: func(zamok.WaitingInfo) {
			m.add("looks while waiting")
			select {
			case waiting <- struct{}{}:
			default:
			}
		},
		Acquired: func(i zamok.AcquiredInfo) {
			m.add("acquired")
			if i.HandedOver {
				m.add("handed over in one trip")
			}
		},
		Released: func(i zamok.ReleasedInfo) {
			m.add("released")
			if i.Err != nil {
				m.add("released with an error")
			}
		},
		Lost: func(e *zamok.LostError) { m.add("lost: " + string(e.Reason)) },
	}
}

// Hooks feed metrics of waiting, holding and loss.
func ExampleTrace() {
	ctx := context.Background()
	server := memory.New()
	metrics := &lockMetrics{counts: make(map[string]int)}
	waiting := make(chan struct{}, 1)
	client, _ := zamok.New(server, &zamok.Config{Trace: metrics.trace(waiting)})
	defer client.Close()
	m := client.Mutex("report", nil)

	lease, _ := m.Lock(ctx)
	next := make(chan *zamok.Lease)
	go func() {
		l, _ := m.Lock(ctx)
		next <- l
	}()
	<-waiting // it stands in the queue
	_ = lease.Release(ctx)
	_ = (<-next).Release(ctx)

	for _, what := range []string{"acquired", "handed over in one trip", "released", "released with an error"} {
		fmt.Printf("%s: %d\n", what, metrics.counts[what])
	}
	// Output:
	// acquired: 2
	// handed over in one trip: 1
	// released: 2
	// released with an error: 0
}
