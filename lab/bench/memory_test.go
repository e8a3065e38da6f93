package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// BenchmarkMemory is what a lease of each kind takes in its process, heap and
// stacks, with 20,000 of them, each of a name of its own.
func BenchmarkMemory(b *testing.B) {
	const leases = 20_000
	for _, k := range []kind{mutex, writer, reader, permit} {
		b.Run(k.name, func(b *testing.B) {
			d, _ := libraries[0].open(b, drivertest.StartServer(b).Addr())
			for b.Loop() {
				c := newClient(b, d, nil)
				held := make([]*zamok.Lease, leases)
				for i := range 100 { // connections are made
					l, err := k.of(c, fmt.Sprint("warm", i))(context.Background())
					if err != nil {
						b.Fatal(err)
					}
					held[i] = l
				}
				before := memory()
				takeAll(b, c, []kind{k}, held, 0, leases)
				b.ReportMetric(float64(memory()-before)/leases, "B/lease")
				if err := c.Close(); err != nil {
					b.Log(err)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
