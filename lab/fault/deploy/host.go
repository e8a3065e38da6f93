package deploy

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Host is what the helpers of tests are given by a program: it has their temporary
// directories and runs their cleanups. What is fatal to a test is a panic here, which
// [Host.Try] turns into an error. Methods of testing.TB that it lacks are not called
// by any of them.
type Host struct {
	testing.TB
	dir string
	log io.Writer

	mu       sync.Mutex
	dirs     int
	cleanups []func()
}

// NewHost makes a host of files in dir. log takes what helpers say.
func NewHost(dir string, log io.Writer) *Host { return &Host{dir: dir, log: log} }

// failure is what a helper could not do.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

// Try calls f and returns what was fatal in it. It may be used from many goroutines.
func (h *Host) Try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// Close runs the cleanups, the last one first.
func (h *Host) Close() {
	for {
		h.mu.Lock()
		n := len(h.cleanups)
		if n == 0 {
			h.mu.Unlock()
			return
		}
		last := h.cleanups[n-1]
		h.cleanups = h.cleanups[:n-1]
		h.mu.Unlock()
		if err := h.Try(last); err != nil {
			h.Log(err)
		}
	}
}

// Helper does nothing.
func (h *Host) Helper() {}

// Cleanup has f called by Close.
func (h *Host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, f)
}

// TempDir makes a new directory, which Close leaves: a failed run is looked into.
func (h *Host) TempDir() string {
	h.mu.Lock()
	h.dirs++
	dir := filepath.Join(h.dir, fmt.Sprintf("files-%d", h.dirs))
	h.mu.Unlock()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	return dir
}

// Setenv sets a variable of this process until Close.
func (h *Host) Setenv(name, value string) {
	before, was := os.LookupEnv(name)
	h.Cleanup(func() {
		if was {
			_ = os.Setenv(name, before)
		} else {
			_ = os.Unsetenv(name)
		}
	})
	if err := os.Setenv(name, value); err != nil {
		h.Fatal(err)
	}
}

// Log and Logf say something.
func (h *Host) Log(args ...any) { h.say(fmt.Sprintln(args...)) }

// Logf is Log with a format.
func (h *Host) Logf(format string, args ...any) { h.say(fmt.Sprintf(format+"\n", args...)) }

// Error and Errorf, Fatal and Fatalf end what Try called.
func (h *Host) Error(args ...any) { h.Fatal(args...) }

// Errorf is Error with a format.
func (h *Host) Errorf(format string, args ...any) { h.Fatalf(format, args...) }

// Fatal ends what Try called.
func (h *Host) Fatal(args ...any) { panic(failure{fmt.Sprint(args...)}) }

// Fatalf is Fatal with a format.
func (h *Host) Fatalf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

func (h *Host) say(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = io.WriteString(h.log, text)
}
