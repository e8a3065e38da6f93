package parts

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// kind is one kind of lease, and how a name is taken as one of it.
type kind struct {
	name string
	of   func(c *zamok.Client, name string) func(ctx context.Context) (*zamok.Lease, error)
}

type take = func(ctx context.Context) (*zamok.Lease, error)

// A permit is one of ten: none ever waits for it here.
var (
	mutex  = kind{"mutex", func(c *zamok.Client, name string) take { return c.Mutex(name, nil).Lock }}
	writer = kind{"writer", func(c *zamok.Client, name string) take { return c.RWMutex(name, nil).Lock }}
	reader = kind{"reader", func(c *zamok.Client, name string) take { return c.RWMutex(name, nil).RLock }}
	permit = kind{"permit", func(c *zamok.Client, name string) take { return c.Semaphore(name, 10, nil).Acquire }}
)

// serverCPU is the time that the server has had of processors.
func serverCPU(tb testing.TB, s *drivertest.Server) time.Duration {
	tb.Helper()
	text, _ := s.MustDo("INFO", "cpu").(string)
	return infoField(tb, text, "used_cpu_sys:", "", time.Second) + infoField(tb, text, "used_cpu_user:", "", time.Second)
}

// infoField reads a number of INFO: that in a line, behind a word.
func infoField(tb testing.TB, text, line, word string, unit time.Duration) time.Duration {
	tb.Helper()
	_, rest, _ := strings.Cut(text, "\n"+line)
	rest, _, _ = strings.Cut(rest, "\n")
	_, rest, _ = strings.Cut(rest, word)
	rest, _, _ = strings.Cut(rest, ",")
	n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if err != nil {
		tb.Fatalf("INFO has no %s%s: %v", line, word, err)
	}
	return time.Duration(n * float64(unit))
}
