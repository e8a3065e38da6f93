//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import "time"

// watch tells the lease's deadline on the clock of bootNow.
type watch struct {
	lease Lease
	seen  time.Time     // the Deadline that at was made from
	at    time.Duration // on the clock of bootNow
	slept time.Duration // asleep() at the last look, 0 before the first
}

// deadline looks at the lease again. All that can go wrong between two clocks
// makes the result too early: the stamp is taken first; and if the machine slept
// since the last look, then the renewal seen now may be from before that, and
// time.Until, which counts on Go's clock, does not know of the sleep.
func (w *watch) deadline() time.Duration {
	now, slept := bootNow(), asleep()
	d := w.lease.Deadline()
	if d.IsZero() {
		return never
	}
	if !d.Equal(w.seen) {
		missed := time.Duration(0)
		if w.slept != 0 {
			missed = max(0, slept-w.slept)
		}
		w.seen, w.at = d, now+time.Until(d)-missed
	}
	w.slept = slept
	return w.at
}

// margin is how long before the deadline KILL comes: time for the signal to be
// sent and for the kernel to tear the processes down.
func margin(killAfter time.Duration) time.Duration {
	return min(max(killAfter/4, 5*time.Millisecond), 200*time.Millisecond)
}

// lead is how much earlier zamok stops the command than its keeper would, so
// that a zamok which is alive does it, once, and the command gets one TERM.
func lead(killAfter time.Duration) time.Duration {
	return min(killAfter/10+5*time.Millisecond, time.Second)
}
