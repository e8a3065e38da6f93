// Package process tells what this process has of the machine.
package process

import (
	"runtime"
	"syscall"
	"time"
)

// CPU is the time that this process has had of processors.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of this process there always is an answer
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Memory is what the process has in its heap and stacks, in bytes: the least of several
// looks, since renewals under way have some, and end.
func Memory() uint64 {
	least := uint64(1 << 62)
	for range 5 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc+m.StackInuse)
		<-time.After(20 * time.Millisecond)
	}
	return least
}
