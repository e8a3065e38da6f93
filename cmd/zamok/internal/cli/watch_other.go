//go:build !unix

package cli

import (
	"os"
	"time"
)

// readable cannot tell here: the read waits.
func readable(*os.File, time.Duration) bool { return true }

// resizes tells nothing here: the next picture has the new size.
func resizes() (resized <-chan os.Signal, ignore func()) { return nil, func() {} }

func stopSelf() {}
