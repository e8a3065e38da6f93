package diff

import (
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/skew"
)

// clock is the server's clock, and what it was set to last.
type clock struct {
	of *skew.Clock
	us int64
}

func (c *clock) set(us int64) error {
	if us == c.us {
		return nil
	}
	c.us = us
	return c.of.Set(us)
}

// startServer starts a server that lives by the clock returned.
func startServer(t *testing.T) (*drivertest.Server, *clock) {
	t.Helper()
	s, of := skew.StartServer(t, start)
	return s, &clock{of: of, us: start}
}
