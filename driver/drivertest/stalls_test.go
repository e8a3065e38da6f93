package drivertest

import (
	"testing"
	"time"
)

func TestStallsAreCounted(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	s := &Stalls{gaps: []gap{{at(10), 5 * time.Millisecond}, {at(30), 10 * time.Millisecond}, {at(40), 5 * time.Millisecond}}}
	for _, c := range []struct{ from, till, want int }{
		{0, 100, 20}, {0, 5, 0}, {7, 100, 18}, {0, 8, 3}, {25, 37, 7}, {10, 20, 0}, {22, 24, 2}, {50, 60, 0}, {41, 100, 0},
	} {
		if got := s.Between(at(c.from), at(c.till)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", c.from, c.till, got, c.want)
		}
	}
}

// However much this machine does besides, no more than what has passed is a stall.
func TestStallsAreNoted(t *testing.T) {
	s := WatchStalls()
	from := time.Now()
	<-time.After(20 * time.Millisecond)
	s.Stop()
	if took, stalled := time.Since(from), s.Between(from, time.Now()); stalled > took {
		t.Errorf("%v of %v", stalled, took)
	}
}
