package interop

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestMain is also the main function of the processes that tests start.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // it prints each connection that a killed server closes
	if role := os.Getenv(roleEnv); role != "" {
		if err := speak(role, os.Getenv(addrEnv)); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		// Nearly all that these tests do is wait for a TTL or a poll.
		if err := f.Value.Set("10"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
