package drivertest

import "syscall"

// serverAttr ties the life of a server to the thread that starts it, which
// exists as long as the test binary: a test that panics or runs into the time
// limit of go test runs no cleanup, and would leave its servers behind.
func serverAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
