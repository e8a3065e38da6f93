package zamok_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/zamoktest"
)

// bothHold checks that two hold a lock, in this order, and that the older is told at its
// next renewal.
func bothHold(t *testing.T, older, newer *zamok.Lease, renewal time.Duration) {
	t.Helper()
	if older.Err() != nil {
		t.Errorf("the first has ended before the second began: %v", older.Err())
	}
	if newer.Fence() <= older.Fence() {
		t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
	}
	start := time.Now()
	if lost := lossOf(t, older); time.Since(start) > renewal+time.Second {
		t.Errorf("told after %v: %v", time.Since(start), lost)
	}
}

// Leases end by the server's clock: when that is set forward, two hold.
func TestServersClockIsSetForward(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		older := lock(t, s.Client().Mutex("job", nil))
		s.Step(time.Minute)
		newer := lock(t, s.Client().Mutex("job", nil))
		bothHold(t, older, newer, 5*time.Second)
		release(t, newer)
	})
}

// When it is set back, the lock of one who died is free as much later, and one that is
// released is free at once. The counter keeps fences growing.
func TestServersClockIsSetBack(t *testing.T) {
	const step = 10 * time.Minute
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		dead := lock(t, s.Client().Mutex("job", nil))
		dead.Detach()
		s.Step(-step)
		m := s.Client().Mutex("job", nil)
		pass(step)
		if _, err := m.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("before the dead holder's lease ends: %v", err)
		}
		pass(16 * time.Second)
		last := dead.Fence()
		for range 2 {
			l, err := m.TryLock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if l.Fence() <= last {
				t.Errorf("fence %d after %d", l.Fence(), last)
			}
			last = l.Fence()
			s.Step(-step)
			release(t, l)
		}
	})
}

// One member's clock that is set forward takes its vote back, and no more: only with
// another vote that is lost too is there a majority for somebody else.
func TestQuorumMembersClockIsSetForward(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		older := lock(t, all.client(t).Mutex("job", nil))
		rival := all.client(t).Mutex("job", nil)
		release(t, lock(t, all.client(t).Mutex("other", nil))) // all votes for the job are there
		all[2].Step(time.Hour)
		if _, err := rival.TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("with one vote of three: %v", err)
		}
		all[1].Del("lock:job")
		all[2].Step(time.Hour)
		newer, err := rival.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bothHold(t, older, newer, time.Second)
		release(t, newer)
		pass(5 * time.Second)
		all.left(t)
	})
}
