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

// startPowered returns a server with an append-only file and its clients. Leases are as
// long as they may be without that their holders listen, and ask when they hear again.
func startPowered(t *testing.T, appendfsync string) (s *power.Server, a, b *zamok.Client) {
	t.Helper()
	s = power.StartServer(t, "--appendfsync", appendfsync)
	cfg := &zamok.Config{TTL: 30 * time.Second}
	return s, libraries[0].client(t, s.URL(), cfg), libraries[1].client(t, s.URL(), cfg)
}

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
	s, a, b := startPowered(t, "always")
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

// With "everysec" the lock of the last second is lost with the power; and with the
// process, when the disk is busy: the server keeps what comes meanwhile to itself, for two
// seconds at most, and answers. Two hold the lock then. Their fences order them, and the
// older is told when it asks.
func TestALockWrittenEverySecondIsLost(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, s *power.Server, a *zamok.Client) *zamok.Lease{
		"power cut": lockAndPowerCut, "process dies while the disk is busy": lockAndDie,
	} {
		t.Run(name, func(t *testing.T) {
			s, a, b := startPowered(t, "everysec")
			older, newer := bothHold(t, s, b.Mutex("job", nil), func() *zamok.Lease { return lose(t, s, a) })
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
func bothHold(t *testing.T, s *power.Server, rival taker, lose func() *zamok.Lease) (older, newer *zamok.Lease) {
	t.Helper()
	for range 20 {
		older = lose()
		if s.MustDo("EXISTS", "lock:job") == int64(1) {
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

func lockAndPowerCut(t *testing.T, s *power.Server, a *zamok.Client) *zamok.Lease {
	t.Helper()
	l := lock(t, a.Mutex("job", nil))
	s.Fail()
	s.Restart()
	return l
}

func lockAndDie(t *testing.T, s *power.Server, a *zamok.Client) *zamok.Lease {
	t.Helper()
	s.Busy(true)
	within(t, patience, "the disk is to write", func() bool {
		s.MustDo("SET", "something", "else")
		return strings.Contains(s.MustDo("INFO", "persistence").(string), "aof_pending_bio_fsync:1")
	})
	l := lock(t, a.Mutex("job", nil))
	s.Kill()
	s.Busy(false)
	s.Restart()
	return l
}
