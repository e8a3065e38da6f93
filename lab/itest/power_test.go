package itest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/power"
)

// persistent is for leases as long as they may be without that their holders listen, and
// ask when they hear again.
var persistent = &zamok.Config{TTL: 30 * time.Second}

// answer is what the server says of a lease. What it has lost a connection for is
// asked again.
func answer(t *testing.T, l *zamok.Lease) (err error) {
	t.Helper()
	within(t, patience, "the server is asked", func() bool {
		err = l.Check(t.Context())
		return !errors.Is(err, zamok.ErrUnavailable)
	})
	return err
}

// With "always" a lock is on the disk before anybody is told of it.
func TestNoPowerCutTakesALockThatIsAlwaysWritten(t *testing.T) {
	s := power.StartServer(t, "--appendfsync", "always")
	a, b := libraries[0].client(t, s.URL(), persistent), libraries[1].client(t, s.URL(), persistent)
	for range 3 {
		l := lock(t, a.Mutex("job", nil))
		s.Fail()
		s.Restart()
		if err := answer(t, l); err != nil {
			t.Errorf("the holder: %v", err)
		}
		if _, err := b.Mutex("job", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("a rival: %v", err)
		}
		release(t, l)
	}
}

// diskLosses are the ways to lose a lock that the disk does not have.
var diskLosses = []struct {
	name  string
	start func(t *testing.T) (s server, lose func(m taker) *zamok.Lease)
}{
	{"snapshot, process dies", func(t *testing.T) (server, func(taker) *zamok.Lease) {
		s := startServer(t, "--save", "3600 1")
		return s, func(m taker) *zamok.Lease {
			s.MustDo("SAVE")
			l := lock(t, m)
			s.Restart()
			return l
		}
	}},
	{"everysec, power cut", func(t *testing.T) (server, func(taker) *zamok.Lease) {
		s := power.StartServer(t, "--appendfsync", "everysec")
		return server{s.Server}, func(m taker) *zamok.Lease {
			l := lock(t, m)
			s.Fail()
			s.Restart()
			return l
		}
	}},
	// The server keeps what comes meanwhile to itself, for two seconds at most, and answers.
	{"everysec, process dies while the disk is busy", func(t *testing.T) (server, func(taker) *zamok.Lease) {
		s := power.StartServer(t, "--appendfsync", "everysec")
		return server{s.Server}, func(m taker) *zamok.Lease {
			s.Busy(true)
			within(t, patience, "the disk is to write", func() bool {
				s.MustDo("SET", "something", "else")
				return strings.Contains(s.MustDo("INFO", "persistence").(string), "aof_pending_bio_fsync:1")
			})
			l := lock(t, m)
			s.Kill()
			s.Busy(false)
			s.Restart()
			return l
		}
	}},
}

// Two hold a lock that was lost with the data. Their fences order them, and the older is
// told when it asks.
func TestALockThatIsNotOnDiskIsLost(t *testing.T) {
	for _, loss := range diskLosses {
		t.Run(loss.name, func(t *testing.T) {
			s, lose := loss.start(t)
			a, b := libraries[0].client(t, s.URL(), persistent), libraries[1].client(t, s.URL(), persistent)
			older, newer := bothHold(t, s, b.Mutex("job", nil), func() *zamok.Lease { return lose(a.Mutex("job", nil)) })
			if newer.Fence() <= older.Fence() {
				t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
			}
			var lost *zamok.LostError
			if err := answer(t, older); !errors.As(err, &lost) || !slices.Contains(raced, lost.Reason) {
				t.Errorf("the older is told: %v", err)
			}
			release(t, newer)
		})
	}
}

// bothHold has a lock taken and lost with the server's data until its holder does not know
// yet when another takes it. On a busy machine the lock may be on the disk before it is
// lost, or its holder has asked before the other.
func bothHold(t *testing.T, s server, rival taker, lose func() *zamok.Lease) (older, newer *zamok.Lease) {
	t.Helper()
	for range 20 {
		older = lose()
		if s.has(t, "lock:job") {
			_ = older.Release(t.Context()) // its connection is broken
			continue
		}
		newer = lock(t, rival)
		if older.Err() == nil {
			return older, newer
		}
		release(t, newer)
	}
	t.Fatal("never did two hold it")
	return nil, nil
}
