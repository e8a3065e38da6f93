package itest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// TestMain is also the main function of the processes that tests start: a case
// that stops or kills a process runs this binary again, see children_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(child(role))
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		// Most cases wait for time to pass, so more of them fit than there are
		// processors.
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	redis.SetLogger(silent{}) // it prints every dial that fails, which many cases are about
	stalls = drivertest.WatchStalls()
	code := m.Run()
	stalls.Stop()
	if left := leftovers(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left after all tests:\n\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// leftovers returns the stacks of what still runs after all tests. Client
// libraries need up to their own limits to let go of a call that was given up,
// 11 s for rueidis on default options, so it looks for twice as long.
func leftovers() string {
	var left []string
	await(22*time.Second, func() bool {
		buf := make([]byte, 16<<20)
		buf = buf[:runtime.Stack(buf, true)]
		left = nil
		for stack := range strings.SplitSeq(string(buf), "\n\n") {
			if !strings.Contains(stack, "itest.TestMain") && !ofRuntime(stack) {
				left = append(left, stack)
			}
		}
		return len(left) == 0
	})
	return strings.Join(left, "\n\n")
}

func ofRuntime(stack string) bool {
	return strings.Contains(stack, "os/signal.") || strings.Contains(stack, "runtime.ensureSigM")
}
