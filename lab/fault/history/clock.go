package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the host's monotonic clock in nanoseconds. A program's own, that of
// package time, begins anew in each process.
func Now() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0 // every kernel has it
	}
	return ts.Nano()
}

// At is a moment of package time by Now. It is early, by what passes between a look
// at one clock and a look at the other, if possible less than that is allowed to be, and
// never late.
func At(t time.Time) int64 {
	const allowed, tries = int64(100 * time.Microsecond), 10
	for i := 1; ; i++ {
		now := Now()
		at := now + int64(time.Until(t))
		if i == tries || Now()-now < allowed {
			return at
		}
	}
}

// Time is the moment of a stamp by package time, about.
func Time(stamp int64) time.Time {
	return time.Now().Add(time.Duration(stamp - Now()))
}
