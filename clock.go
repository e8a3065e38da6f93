package zamok

import "time"

// instant is a point on the client's own clock: the time since the client was
// made, on the monotonic clock plus the time that the machine was asleep, which
// Go's clock leaves out. All deadlines are instants; no wall clock, neither ours
// nor the server's, ever decides one.
type instant time.Duration

const never = instant(1<<63 - 1)

func (i instant) add(d time.Duration) instant { return i + instant(d) }

func (i instant) sub(j instant) time.Duration { return time.Duration(i - j) }

// clock tells instants.
type clock struct {
	start  time.Time
	asleep time.Duration // what the machine had slept at start
}

func newClock() clock { return clock{start: time.Now(), asleep: asleep()} }

func (c *clock) now() instant {
	d := time.Since(c.start)
	// The two clocks behind asleep are read one after the other, so less than
	// this is noise and not sleep.
	if slept := asleep() - c.asleep; slept > 10*time.Millisecond {
		d += slept
	}
	return instant(d)
}

// time returns the wall time at which an instant is due, for people and for
// context deadlines.
func (c *clock) time(i instant) time.Time {
	return time.Now().Add(i.sub(c.now()))
}
