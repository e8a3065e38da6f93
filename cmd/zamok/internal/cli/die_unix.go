//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// dieOf ends zamok by the signal itself, after all else is done. For a shell it is
// the same exit code; but only a shell that sees that Ctrl-C ended the program
// ends its own loop or script, too.
func dieOf(sig syscall.Signal) {
	signal.Reset(sig)
	if err := syscall.Kill(os.Getpid(), sig); err == nil {
		time.Sleep(time.Second) // it is delivered at once, but perhaps to another thread
	}
}
