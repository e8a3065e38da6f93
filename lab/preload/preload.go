// Package preload starts servers before which a small library of ours stands, that
// answers some of what they ask the system.
package preload

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// StartServer starts a server with the library made of this C source. variables are the
// assignments of a shell that it reads, and args are as those of drivertest.StartServer.
// It needs Linux and a C compiler, and changes the test's environment while it starts, so
// that no parallel test can call it.
func StartServer(t testing.TB, source []byte, variables string, args ...string) *drivertest.Server {
	t.Helper()
	dir := t.TempDir()
	library := filepath.Join(dir, "library.so")
	text := filepath.Join(dir, "library.c")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, text).CombinedOutput(); err != nil {
		t.Fatalf("this test needs Linux and a C compiler named cc: %v\n%s", err, out)
	}
	name := os.Getenv("ZAMOK_TEST_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	binary, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	// A wrapper, since the variables are not for the test's own process.
	wrapper := filepath.Join(dir, "server")
	script := fmt.Sprintf("#!/bin/sh\n%s LD_PRELOAD='%s' exec '%s' \"$@\"\n", variables, library, binary)
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZAMOK_TEST_REDIS_SERVER", wrapper)
	return drivertest.StartServer(t, args...)
}
