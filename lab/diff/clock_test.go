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

// startServer starts a server that lives by the clock returned. Keys end in it when
// somebody asks for them: in passing, Redis 8 drops those of which this is the last ms.
func startServer(t *testing.T) (*drivertest.Server, *clock) {
	t.Helper()
	s, of := skew.StartServer(t, start, "--enable-debug-command", "local")
	s.MustDo("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	return s, &clock{of: of, us: start}
}
