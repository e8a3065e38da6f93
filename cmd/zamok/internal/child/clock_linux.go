package child

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// bootNow reads a clock that never steps, counts time asleep, and is the same
// for all processes of the machine.
func bootNow() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

// asleep is how long the machine has slept since boot: what Go's clock, which
// is CLOCK_MONOTONIC, has missed.
func asleep() time.Duration { return bootNow() - readClock(unix.CLOCK_MONOTONIC) }

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // kernels before 2.6.39
	}
	return time.Duration(ts.Nano())
}

// alarm fires at a time of bootNow, at once on waking if that passed in sleep;
// Go's timers would first make up for the sleep.
type alarm struct {
	c    <-chan struct{}
	file *os.File
	quit chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	c := make(chan struct{})
	a := &alarm{c: c, file: os.NewFile(uintptr(fd), "alarm"), quit: make(chan struct{})}
	go func() {
		for b := make([]byte, 8); ; {
			if _, err := a.file.Read(b); err != nil {
				return // closed
			}
			select {
			case c <- struct{}{}:
			case <-a.quit:
				return
			}
		}
	}()
	return a, nil
}

// set arms the alarm for at, or for now if at has passed.
func (a *alarm) set(at time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(at, 1)))}
	conn, err := a.file.SyscallConn()
	if err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	}
}

func (a *alarm) close() {
	close(a.quit)
	a.file.Close()
}
