//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// clockMonotonic counts time asleep on darwin; the BSDs do not tell it.
func clockMonotonic() int32 {
	switch runtime.GOOS {
	case "darwin":
		return 6
	case "freebsd", "dragonfly":
		return 4
	}
	return 3
}

// bootNow reads a clock that never steps and is the same for all processes of
// the machine.
func bootNow() time.Duration { return readClock(clockMonotonic()) }

// asleep is how long the machine has slept since boot, as far as it tells.
func asleep() time.Duration {
	if runtime.GOOS == "darwin" {
		const uptimeRaw = 8 // CLOCK_UPTIME_RAW, what Go's clock is made of
		return bootNow() - readClock(uptimeRaw)
	}
	return 0
}

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts)
	return time.Duration(ts.Nano())
}

// alarm fires at a time of bootNow. There is no timer that counts time asleep
// here, so it looks four times a second: after waking it is late by that at most.
type alarm struct {
	c     <-chan struct{}
	timer *time.Timer
	out   chan struct{}
	next  chan time.Duration
	quit  chan struct{}
}

func newAlarm() (*alarm, error) {
	a := &alarm{out: make(chan struct{}), next: make(chan time.Duration), quit: make(chan struct{}), timer: time.NewTimer(0)}
	a.c = a.out
	go a.loop()
	return a, nil
}

func (a *alarm) loop() {
	defer a.timer.Stop()
	at := never
	for {
		wait := min(at-bootNow(), 250*time.Millisecond)
		var out chan struct{}
		if wait <= 0 {
			wait, out = 250*time.Millisecond, a.out
		}
		a.timer.Reset(wait)
		select {
		case at = <-a.next:
		case out <- struct{}{}:
			at = never
		case <-a.timer.C:
		case <-a.quit:
			return
		}
	}
}

// set arms the alarm for at, or for now if at has passed.
func (a *alarm) set(at time.Duration) { a.next <- at }

func (a *alarm) close() { close(a.quit) }
