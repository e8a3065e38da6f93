package zamok_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
)

// once has a fault happen to the first run of a script at a member, and to no other.
func once(s *memory.Server, script string, f memory.Fault) {
	var done atomic.Bool
	s.Intercept(func(c driver.Call) memory.Fault {
		if c.Script.Name() == script && done.CompareAndSwap(false, true) {
			return f
		}
		return memory.Fault{}
	})
}

// TestQuorumReleasedBeforeAllHaveAnswered: what goes on for a lease when it is released
// does not make the release find nothing.
func TestQuorumReleasedBeforeAllHaveAnswered(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.client(t).Mutex("job", nil)
		all[2].Step(time.Hour) // so that somebody seems to have had it after A
		release(t, lock(t, m))
		for range 50 {
			var late atomic.Bool
			late.Store(true)
			all[2].Intercept(func(c driver.Call) memory.Fault {
				switch {
				case c.Script == lua.Vote:
					return memory.Fault{DelayReply: 1500 * time.Microsecond}
				case c.Script == lua.Leave && late.CompareAndSwap(true, false):
					return memory.Fault{Delay: 8 * time.Millisecond}
				}
				return memory.Fault{}
			})
			once(all[0], "leave", memory.Fault{Delay: 5 * time.Millisecond})
			once(all[1], "leave", memory.Fault{Delay: 5 * time.Millisecond})
			release(t, lock(t, m))
		}
		pass(5 * time.Second)
		all.left(t)
	})
}

// TestQuorumVoteComesAfterTheRelease: a vote that was on its way is given back.
func TestQuorumVoteComesAfterTheRelease(t *testing.T) {
	for _, f := range []memory.Fault{{Delay: 300 * time.Millisecond}, {Delay: time.Minute}, {DelayReply: 300 * time.Millisecond}, {DropReply: true}} {
		inQuorum(t, 3, func(t *testing.T, all members) {
			m := all.client(t).Mutex("job", nil)
			release(t, lock(t, m))
			once(all[2], "vote", f)
			release(t, lock(t, m))
			pass(max(f.Delay, f.DelayReply) + 5*time.Second)
			all.left(t)
		})
	}
}

// overtaken plays the one way in which a fence could be too small. A has the votes of m0
// and m1, with which its fence is fixed, and m1 loses its vote before it has that fence:
// its clock steps. So B may hold, with m1 and m2, and release. Then m2 gives A its vote.
// It returns the fences of B and of A, 0 if that got none.
func overtaken(t *testing.T, all members, over func(driver.Driver) driver.Driver) (b, a int64) {
	first := all.clientOver(t, func(d driver.Driver) driver.Driver {
		if over != nil {
			d = over(d)
		}
		return unproposed{d}
	}).Mutex("job", nil)
	second := all.client(t).Mutex("job", nil)
	all[0].Step(time.Millisecond) // so that m1 has to be told its fence
	release(t, lock(t, first))
	release(t, lock(t, second))
	once(all[2], "vote", memory.Fault{Delay: 15 * time.Millisecond})
	once(all[1], "confirm", memory.Fault{Delay: 10 * time.Millisecond})
	got := make(chan int64, 1)
	go func() {
		l, err := first.TryLock(t.Context())
		if err != nil {
			got <- 0
			return
		}
		got <- l.Fence()
		_ = l.Release(t.Context())
	}()
	pass(3 * time.Millisecond)
	all[1].Step(time.Hour)
	l, err := second.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b = l.Fence()
	release(t, l)
	if votes := all[2].Calls()[lua.Vote.Name()]; votes != 3 {
		t.Fatalf("m2 voted %d times until B released, want 3: A's vote was to come later", votes)
	}
	return b, <-got
}

// TestQuorumLateVoteDoesNotCount: one that is larger than the fence is no acknowledgement
// of it, since whoever it is larger for may have held meanwhile.
func TestQuorumLateVoteDoesNotCount(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		if b, a := overtaken(t, all, nil); a != 0 && a <= b {
			t.Errorf("fence %d after %d", a, b)
		}
		if voted := all[2].Calls()["vote"]; voted < 4 {
			t.Errorf("m2 voted %d times, so A's vote did not come", voted)
		}
		pass(5 * time.Second)
		all.left(t)
	})
}

// TestQuorumMeetsItsOwnVotes: votes of a try that came to nothing, and are still being given
// back, do not make its next try believe that another holds the lock.
func TestQuorumMeetsItsOwnVotes(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.client(t).Mutex("job", nil)
		release(t, lock(t, m))
		for _, s := range all {
			var voted, left atomic.Int32
			s.Intercept(func(c driver.Call) memory.Fault {
				switch {
				case c.Script == lua.Vote && voted.Add(1) == 1:
					return memory.Fault{DropReply: true}
				case c.Script == lua.Leave && left.Add(1) == 1:
					return memory.Fault{Delay: time.Second}
				}
				return memory.Fault{}
			})
		}
		l, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatalf("nobody else was there: %v", err)
		}
		release(t, l)
		pass(5 * time.Second)
		all.left(t)
	})
}

// repeats is a member whose library sends a release again, since the first reply was lost.
type repeats struct{ driver.Driver }

func (d repeats) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script == lua.Leave {
		if _, err := d.Driver.Eval(ctx, call); err != nil {
			return nil, err
		}
		pass(10 * time.Millisecond)
	}
	return d.Driver.Eval(ctx, call)
}

// repeating is a client whose library does so at m1.
func (all members) repeating(t *testing.T) *zamok.Client {
	return all.clientOver(t, func(d driver.Driver) driver.Driver {
		if d == all[1] {
			return repeats{d}
		}
		return d
	})
}

// TestQuorumLibraryRepeatsRelease: a member that never voted for the lease may have another's
// vote of long before, and is no sign that the lease was lost when a second one was told of
// the release twice.
func TestQuorumLibraryRepeatsRelease(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		first := all.repeating(t).Mutex("job", nil)
		second := all.client(t).Mutex("job", nil)
		release(t, lock(t, second))
		release(t, lock(t, first))
		once(all[2], "vote", memory.Fault{DropRequest: true})
		l := lock(t, first)
		once(all[2], "leave", memory.Fault{Delay: 500 * time.Millisecond})
		if l, err := second.TryLock(t.Context()); err == nil {
			t.Fatalf("it was held: fence %d", l.Fence())
		}
		pass(100 * time.Millisecond)
		release(t, l)
		pass(5 * time.Second)
		all.left(t)
	})
}

// TestQuorumLossIsNotToldByWhoHadNoPart: the last fence of a member that never voted for the
// lease does not say that data was lost.
func TestQuorumLossIsNotToldByWhoHadNoPart(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.repeating(t).Mutex("job", nil)
		release(t, lock(t, m))
		once(all[0], "vote", memory.Fault{DropRequest: true})
		l := lock(t, m)
		for _, s := range all[1:] { // so that the other one's answer is the first
			s.Intercept(func(c driver.Call) memory.Fault {
				if c.Script == lua.Inspect {
					return memory.Fault{Delay: time.Millisecond}
				}
				return memory.Fault{}
			})
		}
		release(t, l)
		pass(5 * time.Second)
		all.left(t)
	})
}
