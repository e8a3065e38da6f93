package diff

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zamok-go/zamok/driver/drivertest"
)

// clock is the server's clock: 8 bytes of a file.
type clock struct {
	file *os.File
	us   int64
}

func (c *clock) set(us int64) error {
	if us == c.us {
		return nil
	}
	c.us = us
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(us))
	_, err := c.file.WriteAt(b[:], 0)
	return err
}

// startServer starts a server that lives by the clock returned.
func startServer(t *testing.T) (*drivertest.Server, *clock) {
	t.Helper()
	dir := t.TempDir()
	shim := filepath.Join(dir, "clock.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", shim, "testdata/clock.c").CombinedOutput(); err != nil {
		t.Fatalf("this test needs Linux and a C compiler named cc: %v\n%s", err, out)
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	c := &clock{file: file}
	if err := c.set(start); err != nil {
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
	// A wrapper, since the variables are not for the test's own process.
	wrapper := filepath.Join(dir, "server")
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD='%s' ZAMOK_CLOCK='%s' exec '%s' \"$@\"\n", shim, file.Name(), binary)
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZAMOK_TEST_REDIS_SERVER", wrapper)
	return drivertest.StartServer(t), c
}
