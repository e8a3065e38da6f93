package zamok

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// asleep returns how long the machine has been suspended since it booted: Go
// counts CLOCK_MONOTONIC, which stands still in a suspend, and a lease does not.
func asleep() time.Duration {
	mono, ok1 := readClock(clockMonotonic)
	boot, ok2 := readClock(clockBoottime)
	if !ok1 || !ok2 {
		return 0
	}
	return boot - mono
}

func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
