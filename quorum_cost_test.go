package zamok_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// ran is how often each script ran at all members, less what had run before.
func (all members) ran(before map[string]int) map[string]int {
	sum := make(map[string]int)
	for _, s := range all {
		for name, n := range s.Calls() {
			sum[name] += n
		}
	}
	for name, n := range before {
		if sum[name] -= n; sum[name] == 0 {
			delete(sum, name)
		}
	}
	return sum
}

// TestQuorumCycleSendsTwoToEach: a vote and the release, and nothing more, since all give
// the fence that is proposed.
func TestQuorumCycleSendsTwoToEach(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.client(t).Mutex("job", nil)
		release(t, lock(t, m))
		pass(time.Second)
		before := all.ran(nil)
		for range 10 {
			release(t, lock(t, m))
			pass(time.Second)
		}
		sent := all.ran(before)
		// The third vote is seldom taken just before the release of its token is on its way to
		// that member, and is given back once more.
		if sent["vote"] != 30 || sent["leave"] < 30 || sent["leave"] > 40 || len(sent) > 2 {
			t.Errorf("10 cycles on 3 members: %v", sent)
		}
	})
}

// TestQuorumCloseLeavesNothing: no goroutine, also when a member hangs.
func TestQuorumCloseLeavesNothing(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		for i := range 3 {
			c := all.client(t)
			m := c.Mutex("job", nil)
			l := lock(t, m)
			waits := make(chan error, 1)
			go func() {
				_, err := c.Mutex("job", nil).Lock(t.Context())
				waits <- err
			}()
			pass(time.Second)
			if i > 0 {
				all[i].Hang()
			}
			if i == 2 {
				release(t, l)
			}
			start := time.Now()
			err := c.Close() // not waiting for a member that hangs
			if took := time.Since(start); took > time.Second || err != nil {
				t.Errorf("Close took %v: %v", took, err)
			}
			<-waits
			all[i].Unhang()
			pass(10 * time.Second) // what a server still had to answer
			all.left(t)
		}
	}) // which fails when a goroutine is left
}

// TestQuorumRenewsWithAHungMember: what one member leaves unanswered costs no
// renewal, and nothing is left of it.
func TestQuorumRenewsWithAHungMember(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		all[0].Hang()
		for range 20 {
			start := time.Now()
			if err := l.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := l.Extend(t.Context(), 3*time.Second); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			pass(time.Second)
		}
		release(t, l)
		all[0].Unhang()
		pass(10 * time.Second)
		all.left(t)
	})
}

// TestQuorumFillsUp: a member that has nothing of a lease gets it with a renewal, once
// its quarantine is over, so that the others may fail.
func TestQuorumFillsUp(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		for i := range all {
			all[i].Wipe()
			all[i].Restart()
			pass(6 * time.Second)
			if all[i].Type("lock:job") != "string" {
				t.Errorf("m%d has nothing of the lease", i)
			}
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
		}
		release(t, l)
		pass(time.Second)
		all.left(t)
	})
}

// TestQuorumReleaseWakesAWaiter at once, and not when its timer fires.
func TestQuorumReleaseWakesAWaiter(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		for range 10 {
			l := lock(t, all.client(t).Mutex("job", nil))
			got := make(chan time.Time)
			go func() {
				next := lock(t, all.client(t).Mutex("job", nil))
				got <- time.Now()
				release(t, next)
			}()
			pass(1700 * time.Millisecond)
			start := time.Now()
			release(t, l)
			if took := (<-got).Sub(start); took > 50*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			pass(time.Second)
		}
	})
}

// TestQuorumIsCancelledInEachPhase: nothing is left, whatever had been sent.
func TestQuorumIsCancelledInEachPhase(t *testing.T) {
	for after := time.Duration(0); after < 8*time.Millisecond; after += 500 * time.Microsecond {
		for _, held := range []bool{false, true} {
			inQuorum(t, 3, func(t *testing.T, all members) {
				m := all.client(t).Mutex("job", nil)
				if held {
					l := lock(t, all.client(t).Mutex("job", nil))
					defer func() {
						release(t, l)
						pass(5 * time.Second)
						all.left(t)
					}()
				}
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				l, err := m.Lock(ctx)
				if err == nil {
					release(t, l)
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("after %v: %v", after, err)
				}
				if !held {
					pass(5 * time.Second)
					all.left(t)
				}
			})
		}
	}
}

// TestQuorumRefusesWhatItCannotDo with a *ConfigError that says why.
func TestQuorumRefusesWhatItCannotDo(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		c := all.client(t)
		l := lock(t, c.Mutex("job", nil))
		defer release(t, l)
		ctx := t.Context()
		for name, err := range map[string]error{
			"MinHold":   second(c.Mutex("a", &zamok.MutexConfig{MinHold: time.Second}).Lock(ctx)),
			"RWMutex":   second(c.RWMutex("a", nil).RLock(ctx)),
			"Semaphore": second(c.Semaphore("a", 2, nil).Acquire(ctx)),
			"Multi":     second(c.Multi([]string{"a", "b"}, nil).Lock(ctx)),
			"Resume":    second(c.Mutex("job", nil).Resume(ctx, l.Token())),
			"Release":   c.Mutex("job", nil).ReleaseToken(ctx, l.Token()),
			"Detach":    second(l.Detach()),
		} {
			var bad *zamok.ConfigError
			if !errors.As(err, &bad) {
				t.Errorf("%s: %v, want a *ConfigError", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
