package zamok

import (
	"sync/atomic"
	"time"
)

// instant is a point on the client's own clock: the time since the client was
// made, on the monotonic clock plus the time that the machine was asleep, which
// Go's clock leaves out. All deadlines are instants; no wall clock, neither ours
// nor the server's, ever decides one.
type instant time.Duration

const never = instant(1<<63 - 1)

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// bound is when a time that begins then is over; never for one of 0, which has no
// end.
func (i instant) bound(d time.Duration) instant {
	if d == 0 {
		return never
	}
	return i.add(d)
}

func (i instant) sub(j instant) time.Duration { return time.Duration(i - j) }

// clock tells instants.
type clock struct {
	start time.Time
	wall  int64         // start, in ns by the wall clock
	base  time.Duration // what the machine had slept at start
	slept atomic.Int64  // what it has slept since, as last asked
	skew  atomic.Int64  // how far the wall clock had gone from the monotonic one then
}

func (c *clock) init() {
	c.start, c.base = time.Now(), asleep()
	c.wall = c.start.UnixNano()
}

const (
	// skewNoise is how far wall and monotonic clock may drift apart before the
	// system is asked whether it slept. A sleep moves the wall clock and not the
	// monotonic one, and reading both costs no system call.
	skewNoise = 5 * time.Millisecond
	// sleepNoise is what two clocks read one after the other may differ by.
	sleepNoise = 10 * time.Millisecond
)

func (c *clock) now() instant {
	t := time.Now()
	d := t.Sub(c.start) // monotonic
	skew := time.Duration(t.UnixNano()-c.wall) - d
	if moved := skew - time.Duration(c.skew.Load()); moved > skewNoise || moved < -skewNoise {
		if slept := asleep() - c.base; slept > sleepNoise {
			c.slept.Store(int64(slept))
		}
		c.skew.Store(int64(skew)) // last: who sees it must see the sleep too
	}
	return instant(d + time.Duration(c.slept.Load()))
}

// until is how long to wait for an instant, and never no time at all: a timer of none
// is run by whoever sets it when time is virtual, two of them at once, and that is more
// than the race detector bears (golang/go#78156).
func (c *clock) until(at instant) time.Duration { return max(at.sub(c.now()), 1) }

// time returns the wall time at which an instant is due, for people and for
// context deadlines.
func (c *clock) time(i instant) time.Time {
	return time.Now().Add(i.sub(c.now()))
}
