package child

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// byDefault gives sig its default action until restore is called. Go cannot: once
// Notify was called for TSTP, Reset leaves Go's handler there, which does nothing.
// A sigaction of zeros is SIG_DFL without flags on every architecture.
func byDefault(sig unix.Signal) (restore func()) {
	var none, old [32]uintptr
	const setSize = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&old)), setSize, 0, 0)
	return func() {
		if errno == 0 {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&old)), 0, setSize, 0, 0)
		}
	}
}

// stopGroup stops zamok's own process group. It may return before the signal
// is delivered.
func stopGroup(sig unix.Signal, _ *signals) (restore func()) {
	restore = byDefault(sig)
	_ = unix.Kill(0, sig)
	return restore
}

// dieWithGroup sends a deadly signal to zamok's own process group.
func dieWithGroup(sig unix.Signal) {
	byDefault(sig)
	_ = unix.Kill(0, sig)
}
