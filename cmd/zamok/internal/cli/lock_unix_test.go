//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A stdout that was closed is the null device, open for both ways; what a user
// redirects there is open for writing.
func TestThrownAway(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		name string
		flag int
		want bool
	}{
		{os.DevNull, os.O_RDWR, true},
		{os.DevNull, os.O_WRONLY, false},
		{file, os.O_RDWR | os.O_CREATE, false},
		{file, os.O_WRONLY, false},
	} {
		f, err := os.OpenFile(c.name, c.flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if got := thrownAway(f); got != c.want {
			t.Errorf("%s opened with %#x: %v, want %v", c.name, c.flag, got, c.want)
		}
		f.Close()
	}
}
