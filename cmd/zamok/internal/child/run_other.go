//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package child

import (
	"context"
	"errors"
	"os"
	"runtime"
)

// ErrUnsupported is Result.Err on systems without process groups.
var ErrUnsupported = errors.New("zamok run needs process groups and does not work on " + runtime.GOOS +
	"; use it in WSL, or the Go library")

// Intercept has nothing to do here.
func Intercept([]string) (code int, handled bool) { return 0, false }

// IgnoredAtStart has nothing to tell here.
func IgnoredAtStart() []os.Signal { return nil }

// Raise has nothing to do here.
func (r Result) Raise() {}

// Run starts nothing and returns ErrUnsupported.
func Run(context.Context, Options) Result {
	return Result{Code: 126, End: NotStarted, Err: ErrUnsupported}
}
