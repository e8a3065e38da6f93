package drivertest

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// Stalls notes for how long this machine keeps a thread waiting that has
// something to do. A test that bounds a duration subtracts that, so that its
// bound is one for the code and not for whatever else the machine does.
type Stalls struct {
	quit, done chan struct{}

	mu   sync.Mutex
	gaps []gap // in order of time
}

// gap is a wait that ended at a time.
type gap struct {
	till time.Time
	long time.Duration
}

const (
	nap      = time.Millisecond
	leastGap = 2 * time.Millisecond // of a nap: what is below that says nothing
)

// WatchStalls begins to watch, with a thread of its own, which looks a thousand
// times a second. Stop ends it.
func WatchStalls() *Stalls {
	s := &Stalls{quit: make(chan struct{}), done: make(chan struct{})}
	go s.watch()
	return s
}

func (s *Stalls) watch() {
	defer close(s.done)
	runtime.LockOSThread()
	for last := time.Now(); ; {
		select {
		case <-s.quit:
			return
		case <-time.After(nap):
		}
		now := time.Now()
		if late := now.Sub(last) - nap; late >= leastGap {
			s.mu.Lock()
			s.gaps = append(s.gaps, gap{now, late})
			s.mu.Unlock()
		}
		last = now
	}
}

// Between returns how long a thread was kept waiting between the two times, or
// since WatchStalls if that is later.
func (s *Stalls) Between(from, till time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.gaps, from, func(g gap, t time.Time) int { return g.till.Compare(t) })
	var sum time.Duration
	for ; i < len(s.gaps); i++ {
		began, ended := s.gaps[i].till.Add(-s.gaps[i].long), s.gaps[i].till
		if !began.Before(till) {
			break
		}
		if began.Before(from) {
			began = from
		}
		if ended.After(till) {
			ended = till
		}
		sum += max(0, ended.Sub(began))
	}
	return sum
}

// Stop ends the watch and waits for that. What was noted remains.
func (s *Stalls) Stop() {
	close(s.quit)
	<-s.done
}
