package zamok_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
)

// restartEmpty has a server lose its data.
func restartEmpty(s *memory.Server) {
	s.Wipe()
	s.Restart()
}

// One member refuses connections and another is 40 ms away: that is a majority, also
// for renewals and releases.
func TestQuorumWithOneDownAndOneFar(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		all[2].Latency(20 * time.Millisecond)
		all[0].Down(nil)
		l := lock(t, all.client(t).Mutex("job", nil))
		pass(30 * time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("two of three members are well, and the lease is lost: %v", err)
		}
		start := time.Now()
		if err := l.Release(t.Context()); err != nil || time.Since(start) > time.Second {
			t.Errorf("Release after %v: %v", time.Since(start), err)
		}
	})
}

// Who holds a lock is known while a member is down, and is waited for.
func TestQuorumHeldWithOneDown(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		all[0].Down(nil)
		c := all.client(t)
		if _, err := c.Mutex("job", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("TryLock: %v", err)
		}
		got := goLock(t, c.Mutex("job", nil))
		pass(10 * time.Second)
		release(t, l)
		release(t, <-got)
	})
}

// A member that is far away is waited for when a near one is in quarantine.
func TestQuorumWithOneInQuarantineAndOneFar(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		all[2].Latency(20 * time.Millisecond)
		c := all.client(t)
		release(t, lock(t, c.Mutex("job", nil)))
		restartEmpty(all[0])
		start := time.Now()
		l, err := c.Mutex("job", nil).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
		release(t, lock(t, c.Mutex("other", nil)))
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// One member that was told other members has no say in what the others decide.
func TestQuorumWithOneOfOtherTerms(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		all[0].Wipe()
		call := driver.Call{Script: lua.Stamp, Keys: []string{"zamok:node"}, Args: []string{"5000 x,y,z"}, Limit: time.Second}
		if _, err := all[0].Eval(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		l := lock(t, all.client(t).Mutex("job", nil))
		if _, err := all.client(t).Mutex("job", nil).TryLock(t.Context()); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("TryLock: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if _, err := all.client(t).Mutex("job", nil).Lock(ctx); !errors.Is(err, zamok.ErrHeld) {
			t.Errorf("Lock: %v", err)
		}
		release(t, l)
	})
}

// Close waits for no member that hangs, nor does a cancelled call.
func TestQuorumLeavesAHungMemberAlone(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		for _, s := range all {
			s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropReply: c.Script.Name() == "line"} })
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		start := time.Now()
		_, err := all.client(t).Mutex("job", nil).Lock(ctx)
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("it returned after %v: %v", took, err)
		}
		release(t, l)
		c := all.client(t)
		all[1].Hang()
		release(t, lock(t, c.Mutex("other", nil)))
		start = time.Now()
		if err := c.Close(); err != nil || time.Since(start) > time.Second {
			t.Errorf("Close after %v: %v", time.Since(start), err)
		}
		all[1].Unhang()
		pass(5 * time.Second)
		all.left(t)
	})
}

// What a member is owed is sent when it is due, and not when something else is.
func TestQuorumGivesAVoteBackAtOnce(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		c := all.client(t)
		release(t, lock(t, c.Mutex("job", nil)))
		all[2].Down(nil)
		all[0].Intercept(func(call driver.Call) memory.Fault {
			return memory.Fault{DropRequest: call.Script.Name() == "vote" && call.Keys[0] == "lock:x"}
		})
		x, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, _ = c.Mutex("x", nil).TryLock(x)
		stop()
		pass(2850 * time.Millisecond) // the vote has failed, and giving it up has been repeated three times
		all[1].Set("lock:job", "somebody", 20*time.Millisecond)
		try, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := c.Mutex("job", nil).TryLock(try)
		stop()
		start := time.Now()
		for all[0].Type("lock:job") != "none" {
			pass(time.Millisecond)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("TryLock: %v; its vote stayed for %v", err, took)
		}
	})
}

// A release of what another has got says so, whoever answers first.
func TestQuorumReleaseOfALostLease(t *testing.T) {
	for i := range 3 {
		inQuorum(t, 3, func(t *testing.T, all members) {
			l := lock(t, all.client(t).Mutex("job", nil))
			pass(50 * time.Millisecond)
			for j, s := range all {
				if j != i {
					s.Set("lock:job", fmt.Sprintf("z1/other/7/abc/1:%d", l.Fence()+10), time.Minute)
				} else {
					s.Latency(100 * time.Microsecond)
				}
			}
			if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("another has two of three; Release: %v", err)
			}
		})
	}
}

// Who was idle does not take its members for silent.
func TestQuorumManyAfterIdle(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		c := all.client(t)
		release(t, lock(t, c.Mutex("job", nil)))
		pass(time.Minute)
		var wg sync.WaitGroup
		var slow atomic.Int64
		for i := range 300 {
			wg.Go(func() {
				start := time.Now()
				l := lock(t, c.Mutex(fmt.Sprint("j", i), nil))
				if time.Since(start) > 10*time.Millisecond {
					slow.Add(1)
				}
				release(t, l)
			})
		}
		wg.Wait()
		if n := slow.Load(); n > 0 {
			t.Errorf("of 300 locks on three members 1 ms away %d took longer than 10 ms", n)
		}
	})
}

// A member that is a little further away is told of each release once.
func TestQuorumTellsAFarMemberOnce(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		all[2].Latency(3 * time.Millisecond)
		m := all.client(t).Mutex("job", nil)
		release(t, lock(t, m))
		pass(10 * time.Second)
		before := all[2].Calls()["leave"]
		for range 100 {
			release(t, lock(t, m))
			pass(50 * time.Millisecond)
		}
		pass(5 * time.Second)
		if n := all[2].Calls()["leave"] - before; n > 200 {
			t.Errorf("%d leaves for 100 cycles", n)
		}
	})
}

// Giving up a place in a queue touches no lock, whatever is in its key.
func TestQuorumPlaceIsGivenUpAlone(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		got := goLock(t, all.client(t).Mutex("job", nil))
		pass(500 * time.Millisecond)
		all[0].Set("lock:job", ":somebody", time.Minute)
		release(t, l)
		l = <-got
		pass(time.Second)
		if v, _ := all[0].Get("lock:job"); v != ":somebody" {
			t.Errorf("a member has %q", v)
		}
		release(t, l)
	})
}
