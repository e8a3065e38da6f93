package parts

import (
	"runtime"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/process"
)

// BenchmarkMemory is what a lease of each kind takes in its process, heap and
// stacks, with 20,000 of them, each of a name of its own.
func BenchmarkMemory(b *testing.B) {
	const leases = 20_000
	for _, k := range []kind{mutex, writer, reader, permit} {
		b.Run(k.name, func(b *testing.B) {
			d, _ := libraries[0].open(b, drivertest.StartServer(b).Addr())
			goroutines := runtime.NumGoroutine()
			for b.Loop() {
				c := newClientOf(b, d, zamok.Config{TTL: 30 * time.Second, GiveUp: time.Minute}) // no renewal comes between
				held := make([]*zamok.Lease, leases)
				takeAll(b, c, []kind{k}, held, 0, 1000) // connections are made
				before := process.Memory()
				takeAll(b, c, []kind{k}, held, 1000, leases)
				b.ReportMetric((float64(process.Memory())-float64(before))/(leases-1000), "B/lease")
				_ = c.Close() // on a busy machine not all are given back in its 2 s
				for limit := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines+10 && time.Now().Before(limit); {
					<-time.After(100 * time.Millisecond) // or the next kind finds less memory in use at its end
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
