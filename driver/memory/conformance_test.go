package memory_test

import (
	"testing"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/driver/memory"
)

// TestConformance: what is asked of every driver, as far as it needs no server.
func TestConformance(t *testing.T) {
	drivertest.RunScripts(t, func(testing.TB) driver.Driver {
		s := memory.New()
		for _, twin := range drivertest.Twins() {
			s.Define(twin.Script.Name(), func(tx *memory.Tx, keys, args []string, _ int64) (any, error) {
				return twin.Run(tx.Publish, keys, args)
			})
		}
		return s
	})
}
