package zamok_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/token"
)

// MaxHold ends a lease of a quorum, renewed or not, while a member hangs; the next one
// comes when it is over, and not before.
func TestQuorumMaxHold(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		start := time.Now()
		l := lock(t, all.client(t).Mutex("job", &zamok.MutexConfig{MaxHold: 10 * time.Second}))
		got := goLock(t, all.client(t).Mutex("job", nil))
		pass(time.Second)
		all[1].Hang()
		if e := lossOf(t, l); e.Reason != zamok.LostMaxHold {
			t.Errorf("lost: %v", e)
		}
		if took := time.Since(start); took > 10*time.Second || took < 9*time.Second {
			t.Errorf("ended after %v", took)
		}
		next := <-got
		if took := time.Since(start); took < 10*time.Second || took > 13*time.Second || next.Fence() <= l.Fence() {
			t.Errorf("the next one came after %v, with %d after %d", took, next.Fence(), l.Fence())
		}
		all[1].Unhang()
		release(t, next)
		pass(5 * time.Second)
		all.left(t)
	})
}

// broken is what an operator's command does at those members.
func (all members) broken(t *testing.T, l *zamok.Lease, at ...int) {
	t.Helper()
	set, err := keys.ForName("", "job")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range at {
		call := driver.Call{Script: lua.Break, Keys: set.Broken(), Args: []string{l.Token(), "ask", token.Note("alice@web-1", "it is stuck: see #12"), ""}, Limit: time.Second}
		if reply, err := all[i].Eval(t.Context(), call); err != nil || reply.([]any)[0] != "asked" {
			t.Fatalf("m%d: %v, %v", i, reply, err)
		}
	}
}

// A holder that an operator asks to stop is told by each member that was told: also when
// it has renewed at others meanwhile, or is given its vote again at one. After its
// release nothing is left.
func TestQuorumBroken(t *testing.T) {
	for _, c := range []struct {
		why   string
		at    []int
		spoil func(members)
	}{
		{"all are told", []int{0, 1, 2}, func(members) {}},
		{"a majority is told", []int{0, 2}, func(members) {}},
		{"one hangs, which was told", []int{0, 1, 2}, func(all members) { all[2].Hang() }},
		{"one hangs, which was not told", []int{0, 1}, func(all members) { all[2].Hang() }},
		{"one has lost its vote, and was told", []int{0, 1, 2}, func(all members) { all[1].Del("lock:job") }},
		{"one has lost its vote, and was not told", []int{1, 2}, func(all members) { all[0].Del("lock:job") }},
	} {
		inQuorum(t, 3, func(t *testing.T, all members) {
			l := lock(t, all.client(t).Mutex("job", nil))
			got := goLock(t, all.client(t).Mutex("job", nil))
			pass(2 * time.Second)
			all.broken(t, l, c.at...)
			c.spoil(all)
			start := time.Now()
			<-l.Context().Done()
			wantBroken(t, context.Cause(l.Context()))
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: the holder was told after %v, want within a third of the TTL", c.why, took)
			}
			if err := l.Release(t.Context()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("%s: Release: %v", c.why, err)
			}
			next := <-got
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("%s: the next one came after %v", c.why, took)
			}
			all[2].Unhang()
			release(t, next)
			pass(5 * time.Second)
			all.left(t)
		})
	}
}

// One that does not end it has it until its TTL is over, and no renewal raises that.
func TestQuorumBrokenAndNotReleased(t *testing.T) {
	inQuorum(t, 5, func(t *testing.T, all members) {
		l := lock(t, all.client(t).Mutex("job", nil))
		pass(10 * time.Second)
		start := time.Now()
		all.broken(t, l, 1, 3, 4)
		next := lock(t, all.client(t).Mutex("job", nil))
		if took := time.Since(start); took < 2*time.Second || took > 5*time.Second || next.Fence() <= l.Fence() {
			t.Errorf("the next one came after %v, with %d after %d", took, next.Fence(), l.Fence())
		}
		wantBroken(t, l.Err())
		release(t, next)
	})
}
