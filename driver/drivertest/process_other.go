//go:build !unix

package drivertest

import (
	"errors"
	"os"
)

func pauseProcess(*os.Process) error  { return errors.ErrUnsupported }
func resumeProcess(*os.Process) error { return errors.ErrUnsupported }
