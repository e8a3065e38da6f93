package bench

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// BenchmarkQuorum is a cycle on three servers beside one on a single server.
func BenchmarkQuorum(b *testing.B) {
	for _, lib := range libraries {
		for _, workers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", lib.name, workers), func(b *testing.B) {
				d, _ := lib.open(b, drivertest.StartServer(b).Addr())
				single := byZamok(newClient(b, d, nil), workers)
				single.name = "single"
				var nodes []zamok.Node
				for i := range 3 {
					d, _ := lib.open(b, drivertest.StartServer(b).Addr())
					nodes = append(nodes, zamok.Node{Name: fmt.Sprint("node", i), Driver: d})
				}
				// The servers are not stamped: the first cycle waits for their quarantine.
				c, err := zamok.NewQuorum(nodes, &zamok.Config{TTL: quorumTTL, Quarantine: quorumTTL, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = c.Close() })
				quorum := byZamok(c, workers)
				quorum.name = "quorum"
				takeTurns(b, workers, []*variant{single, quorum})
			})
		}
	}
}

// quorumTTL is the TTL of a quorum's leases here, and so the quarantine.
const quorumTTL = 2 * time.Second
