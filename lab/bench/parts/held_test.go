package parts

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/process"
)

const (
	heldLeases = 100_000 // $ZAMOK_BENCH_LEASES
	heldTTL    = 15 * time.Second
)

// BenchmarkHeld is what it costs a process to hold and renew many leases, each of a
// name of its own, for three TTLs: its memory, its goroutines, its part of a
// processor and the server's. One iteration is all of that.
func BenchmarkHeld(b *testing.B) {
	n := heldLeases
	if text := os.Getenv("ZAMOK_BENCH_LEASES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for _, lib := range libraries {
		for _, of := range [][]kind{{mutex}, {mutex, writer, reader, permit}} {
			name := of[0].name
			if len(of) > 1 {
				name = "kinds"
			}
			b.Run(fmt.Sprintf("%s/%s", lib.name, name), func(b *testing.B) {
				for b.Loop() {
					holdMany(b, lib, of, n)
				}
			})
		}
	}
}

func holdMany(b *testing.B, lib library, of []kind, n int) {
	server := drivertest.StartServer(b)
	d, _ := lib.open(b, server.Addr())
	var lost, failed, least atomic.Int64
	least.Store(int64(heldTTL))
	c := newClientOf(b, d, zamok.Config{TTL: heldTTL, GiveUp: time.Minute, Trace: &zamok.Trace{
		Renewed: func(i zamok.RenewedInfo) {
			if i.Err != nil {
				failed.Add(1)
			}
			for old := least.Load(); int64(i.Left) < old && !least.CompareAndSwap(old, int64(i.Left)); old = least.Load() {
			}
		},
		Lost: func(e *zamok.LostError) {
			if e.Reason != zamok.LostClosed {
				lost.Add(1)
			}
		},
	}})
	leases := make([]*zamok.Lease, n)
	before := process.Memory()
	start := time.Now()
	takeAll(b, c, of, leases, 0, n/100)
	goroutines := runtime.NumGoroutine()
	takeAll(b, c, of, leases, n/100, n)
	b.ReportMetric(time.Since(start).Seconds(), "s-to-take")

	<-time.After(heldTTL / 3) // what was taken together is renewed apart from now on
	mine, its, from := process.CPU(), serverCPU(b, server), time.Now()
	most := 0
	for till := from.Add(3 * heldTTL); time.Now().Before(till); {
		most = max(most, runtime.NumGoroutine())
		<-time.After(50 * time.Millisecond)
	}
	mine, its = process.CPU()-mine, serverCPU(b, server)-its
	took := time.Since(from)
	b.ReportMetric(100*mine.Seconds()/took.Seconds(), "%-of-a-core")
	b.ReportMetric(100*its.Seconds()/took.Seconds(), "%-of-a-core-server")
	b.ReportMetric((float64(process.Memory())-float64(before))/float64(n), "B/lease")
	b.ReportMetric(float64(most-goroutines), "more-goroutines-at-most")
	b.ReportMetric(time.Duration(least.Load()).Seconds(), "s-left-at-worst")
	b.ReportMetric(float64(failed.Load()), "renewals-repeated")
	b.ReportMetric(0, "ns/op")
	for _, l := range leases {
		if l.Err() != nil {
			lost.Add(1)
		}
	}
	b.ReportMetric(float64(lost.Load()), "lost")
}

// takeAll takes leases from that one to that, alternately of each kind, with as many
// goroutines as the pool of a client has connections on a small machine.
func takeAll(b *testing.B, c *zamok.Client, of []kind, leases []*zamok.Lease, from, to int) {
	b.Helper()
	const workers = 16
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := from + w; i < to && !b.Failed(); i += workers {
				l, err := of[i%len(of)].of(c, fmt.Sprint("job", i))(context.Background())
				if err != nil {
					b.Error(err)
					return
				}
				leases[i] = l
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
}
