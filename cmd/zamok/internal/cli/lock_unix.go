//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// thrownAway says whether nobody can read what is written to f. Go opens the null
// device in the place of a standard file that was closed, for reading and writing,
// and then every write succeeds. Who redirects to /dev/null in a shell opens it
// for writing, and means it.
func thrownAway(f *os.File) bool {
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || mode&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	is, err := f.Stat()
	return err == nil && os.SameFile(is, null)
}
