package parts

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/lua"
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
				stamp := driver.Call{Script: lua.Stamp, Keys: []string{"zamok:node"}, Args: []string{"60000 node0,node1,node2"}, Limit: time.Second}
				for i := range 3 {
					d, _ := lib.open(b, drivertest.StartServer(b).Addr())
					nodes = append(nodes, zamok.Node{Name: fmt.Sprint("node", i), Driver: d})
					if _, err := d.Eval(b.Context(), stamp); err != nil {
						b.Fatal(err)
					}
				}
				c, err := zamok.NewQuorum(nodes, &zamok.Config{Quarantine: time.Minute, Logger: slog.New(slog.DiscardHandler)})
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
