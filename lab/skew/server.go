package skew

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/preload"
)

//go:embed testdata/clock.c
var source []byte

// Clock is the wall clock of a server: 8 bytes of a file, in µs. That of StartServer
// stands still between two calls of Set. The server's timers go on by themselves.
type Clock struct{ file *os.File }

// Set makes it that many µs after 1970, or of StartRunning so many ahead of the host's.
func (c *Clock) Set(us int64) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(us))
	_, err := c.file.WriteAt(b[:], 0)
	return err
}

// StartServer starts a server whose clock is the one returned, which is us to begin
// with. args are as those of drivertest.StartServer; it needs what preload.StartServer
// needs.
func StartServer(t testing.TB, us int64, args ...string) (*drivertest.Server, *Clock) {
	t.Helper()
	return start(t, us, "", args...)
}

// StartRunning is StartServer with a clock that runs: what is Set is how far it is
// ahead of the host's, 0 to begin with.
func StartRunning(t testing.TB) (*drivertest.Server, *Clock) {
	t.Helper()
	return start(t, 0, "ZAMOK_CLOCK_RUNS=1 ")
}

func start(t testing.TB, us int64, more string, args ...string) (*drivertest.Server, *Clock) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	c := &Clock{file: file}
	if err := c.Set(us); err != nil {
		t.Fatal(err)
	}
	// The wrapper of a server that the test starts later runs this one's, and its clock
	// counts then.
	variables := fmt.Sprintf("%sZAMOK_CLOCK=\"${ZAMOK_CLOCK:-%s}\"", more, file.Name())
	return preload.StartServer(t, source, variables, args...), c
}
