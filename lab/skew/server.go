package skew

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
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
// with. args are as those of drivertest.StartServer. It needs Linux and a C compiler, and changes the test's environment while it
// starts, so that no parallel test can call it.
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
	dir := t.TempDir()
	shim := filepath.Join(dir, "clock.so")
	text := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", shim, text).CombinedOutput(); err != nil {
		t.Fatalf("this test needs Linux and a C compiler named cc: %v\n%s", err, out)
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	c := &Clock{file: file}
	if err := c.Set(us); err != nil {
		t.Fatal(err)
	}

	name := os.Getenv("ZAMOK_TEST_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	binary, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	// A wrapper, since the variables are not for the test's own process. It may be
	// called by that of another server that the test starts: then it has the clock of that one.
	wrapper := filepath.Join(dir, "server")
	script := fmt.Sprintf("#!/bin/sh\n%sLD_PRELOAD='%s' ZAMOK_CLOCK=\"${ZAMOK_CLOCK:-%s}\" exec '%s' \"$@\"\n", more, shim, file.Name(), binary)
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZAMOK_TEST_REDIS_SERVER", wrapper)
	return drivertest.StartServer(t, args...), c
}
