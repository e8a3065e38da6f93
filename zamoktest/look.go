package zamoktest

import (
	"strconv"
	"strings"
	"time"
)

// The methods here look at a lock at one moment, whatever is broken, and without
// a request: they change neither the lock nor what Calls counts.

// Held says whether somebody has the lock. A lock that rests after its holder
// (MutexConfig.MinHold) counts as held; one whose lease has run out does not.
func (s *Server) Held(name string) bool { return s.Type(s.Key(name)) != "none" }

// Fence returns the fence of whoever has the lock: Lease.Fence, seen from the
// server. Goroutines that pass a lock on within a process (zamok.Config.HandOver)
// have larger ones than the first of them, which this is. It is 0 when nobody has
// the lock, and for a value that is none of zamok's.
func (s *Server) Fence(name string) int64 {
	value, _ := s.Get(s.Key(name))
	token, rest, _ := strings.Cut(value, ":") // a token has no colon, and begins with z1
	if !strings.HasPrefix(token, "z1") {
		return 0
	}
	digits, _, _ := strings.Cut(rest, "!") // behind it an operator's reason: see BreakLock
	fence, _ := strconv.ParseInt(digits, 10, 64)
	return fence
}

// Waiters returns how many stand in the lock's queue. One that died without a
// word is among them until its turn comes. Of the goroutines of one client one at a
// time does, unless zamok.Config.HandOver is negative.
func (s *Server) Waiters(name string) int {
	for _, key := range s.Keys() {
		if s.isQueue(key, name) {
			return s.ZCard(key)
		}
	}
	return 0
}

// isQueue says whether the key is the queue of the lock: the tag of the cluster
// slot, which is the lock's key or a tag within it, and in that case the lock's
// key behind it. See docs/protocol.md.
func (s *Server) isQueue(key, name string) bool {
	rest, ok := strings.CutPrefix(key, s.cfg.Prefix+"zamok:queue:{")
	if !ok {
		return false
	}
	if rest == s.Key(name)+"}" {
		return true
	}
	_, behind, _ := strings.Cut(rest, "}")
	return behind == s.Key(name)
}

// awaitLimit is how long a test waits for what its code should do. In a bubble
// of testing/synctest that is no time.
const awaitLimit = 30 * time.Second

// AwaitHeld waits until somebody has the lock, and returns the fence. The test
// fails when that takes more than 30 s.
func (s *Server) AwaitHeld(name string) (fence int64) {
	s.t.Helper()
	if !await(func() bool { return s.Held(name) }) {
		s.t.Fatalf("zamoktest: AwaitHeld(%q): nobody holds it after %v", name, awaitLimit)
	}
	return s.Fence(name)
}

// AwaitWaiters waits until n stand in the lock's queue (see Waiters): code that was started in
// another goroutine is waiting then. 0 waits until the queue is empty. The test
// fails when that takes more than 30 s.
func (s *Server) AwaitWaiters(name string, n int) {
	s.t.Helper()
	if !await(func() bool { return s.Waiters(name) == n }) {
		s.t.Fatalf("zamoktest: AwaitWaiters(%q, %d): %d wait after %v", name, n, s.Waiters(name), awaitLimit)
	}
}

// await looks every millisecond, since nothing tells of what happens in the
// server.
func await(cond func() bool) bool {
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit.C:
			return cond()
		}
	}
	return true
}
