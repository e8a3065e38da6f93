package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/lua"
)

var stuck = &inspect.BreakConfig{By: "alice@web-1", Why: "it is stuck"}

func shown(t *testing.T, q *inspect.Quorum) inspect.QuorumLock {
	t.Helper()
	l, err := q.Show(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The holder is told at its next renewal, keeps the lock until it has stopped, and then
// whoever waits has it. A second asking changes nothing.
func TestBreakOnAQuorum(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		lease := locked(t, all.client(t))
		waits := stands(t, all.client(t).Mutex("job", nil).Lock)
		b, err := q.Break(t.Context(), shown(t, q), stuck)
		if err != nil || !b.Asked || b.Name != "job" || b.Holder.Token != lease.Token() || b.Fence != lease.Fence() || b.By != "alice@web-1" || b.Why != "it is stuck" || b.Left <= 0 || b.Left > 15*time.Second || b.AuditErr != nil {
			t.Fatalf("%+v, %v", b, err)
		}
		if b, err := q.Break(t.Context(), shown(t, q), &inspect.BreakConfig{By: "bob", Why: "again"}); err != nil || b.By != "alice@web-1" || b.Why != "it is stuck" {
			t.Errorf("asked again: %+v, %v", b, err)
		}
		if l := shown(t, q); l.State != inspect.QuorumHeld || l.Holder.Broken == nil || *l.Holder.Broken != (inspect.BrokenBy{By: "alice@web-1", Why: "it is stuck"}) {
			t.Errorf("while it stops: %+v", l.Holder)
		}
		start := time.Now()
		wantBroken(t, lostTo(t, lease), "alice@web-1", "it is stuck")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("told after %v, want within a third of the TTL", took)
		}
		select {
		case err := <-waits:
			t.Fatalf("the lock passed on while the holder was stopping: %v", err)
		default:
		}
		wantBroken(t, lease.Release(t.Context()), "alice@web-1", "it is stuck")
		start = time.Now()
		if err := <-waits; err != nil || time.Since(start) > 100*time.Millisecond {
			t.Errorf("who waited got it after %v: %v", time.Since(start), err)
		}
	})
}

// A holder of a long lease is told at once, also when one member hangs. One that does
// not end it has it for as long as was said, and raises it no more.
func TestBreakOnAQuorumOneHangs(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		lease := got(t, all.client(t).Mutex("job", &zamok.MutexConfig{TTL: time.Minute}).Lock)
		time.Sleep(5 * time.Second) // in virtual time, as all here; by then it listens
		all[2].Hang()
		l := shown(t, q)
		start := time.Now()
		b, err := q.Break(t.Context(), l, stuck)
		if took := time.Since(start); err != nil || !b.Asked || b.Left < 30*time.Second || b.Left > time.Minute || took > 100*time.Millisecond {
			t.Fatalf("after %v: %+v, %v", took, b, err)
		}
		wantBroken(t, lostTo(t, lease), "alice@web-1", "it is stuck")
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		next := locked(t, all.client(t)) // it waits until the lease is over
		if took := time.Since(start); took < b.Left-time.Second || took > b.Left+5*time.Second || next.Fence() <= lease.Fence() {
			t.Errorf("the next one has it after %v with %d, and the holder had %v left and %d", took, next.Fence(), b.Left, lease.Fence())
		}
		all[2].Unhang()
	})
}

// A holder whose renewals reach no member is not told, and its lease ends all the same.
func TestBreakOnAQuorumOfOneThatIsCutOff(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		lease := locked(t, all.client(t))
		for _, s := range all {
			s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropRequest: c.Script == lua.Renew} })
		}
		b, err := q.Break(t.Context(), shown(t, q), stuck)
		if err != nil {
			t.Fatal(err)
		}
		if e := lostTo(t, lease); e.Reason != zamok.LostExpired {
			t.Errorf("lost: %v", e)
		}
		time.Sleep(b.Left)
		if l := shown(t, q); l.State != inspect.QuorumFree {
			t.Errorf("when it must be over: %+v", l)
		}
	})
}

// Broken.Left is when too few votes are left that nobody raises: those of a member that
// was not asked may be.
func TestBreakOnAQuorumLeft(t *testing.T) {
	for _, c := range []struct {
		short []int // members whose votes end earlier
		down  int   // -1: none
		want  time.Duration
	}{
		{nil, -1, 15 * time.Second}, {[]int{1}, -1, 15 * time.Second}, {[]int{0, 1}, -1, 4 * time.Second},
		{[]int{0}, 2, 15 * time.Second}, {[]int{0, 1}, 2, 4 * time.Second},
	} {
		inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
			stamped(t, q)
			locked(t, all.client(t))
			synctest.Wait()
			for _, n := range c.short {
				all[n].Expire("app:lock:job", 4*time.Second)
			}
			if c.down >= 0 {
				all[c.down].Down(errors.New("refused"))
			}
			if b, err := q.Break(t.Context(), shown(t, q), stuck); err != nil || b.Left != c.want {
				t.Errorf("%v end earlier, %d is down: %v is left, want %v: %v", c.short, c.down, b.Left, c.want, err)
			}
		})
	}
}

// What cannot be broken is refused with the reason, and no other holder is hit.
func TestBreakOnAQuorumRefused(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		field := func(l inspect.QuorumLock, c *inspect.BreakConfig) string {
			var bad *zamok.ConfigError
			if _, err := q.Break(t.Context(), l, c); !errors.As(err, &bad) {
				t.Errorf("%v; want a *ConfigError", err)
				return ""
			}
			return bad.Field
		}
		if f := field(shown(t, q), stuck); f != "Lock" {
			t.Errorf("of a free one: %s", f)
		}
		lease := locked(t, all.client(t))
		old := shown(t, q)
		for want, c := range map[string]*inspect.BreakConfig{"BreakConfig.Why": nil, "BreakConfig.Now": {Why: "x", Now: true}, "BreakConfig.Token": {Why: "x", Token: "z1/elsewhere/1/x/1"}} {
			if f := field(old, c); f != want {
				t.Errorf("%s, want %s", f, want)
			}
		}
		if f := field(inspect.QuorumLock{Name: "job"}, stuck); f != "Lock" {
			t.Errorf("of none: %s", f)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var changed *inspect.ChangedError
		if _, err := q.Break(t.Context(), old, stuck); !errors.As(err, &changed) || changed.Now.Token != "" {
			t.Errorf("after the release: %v", err)
		}
		next := locked(t, all.client(t))
		synctest.Wait()
		if _, err := q.Break(t.Context(), old, stuck); !errors.As(err, &changed) || changed.Now.Token != next.Token() {
			t.Errorf("when another has it: %v", err)
		}
		if err := next.Check(t.Context()); err != nil {
			t.Errorf("the next has lost it: %v", err)
		}
		now := shown(t, q)
		all[0].Down(errors.New("refused"))
		all[1].Down(errors.New("refused"))
		if _, err := q.Break(t.Context(), now, stuck); err == nil || !strings.Contains(err.Error(), "1 of 3 members asked its holder to stop, and a majority is 2") || !strings.Contains(err.Error(), "member m1: ") {
			t.Errorf("with two down: %v", err)
		}
	})
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		for _, s := range all {
			s.Set("app:lock:job", "theirs", time.Minute)
		}
		if _, err := q.Break(t.Context(), shown(t, q), stuck); !errors.Is(err, inspect.ErrDeaf) {
			t.Errorf("a foreign holder: %v", err)
		}
	})
}

// A vote that ended before the others is not given again while a member tells of the
// break: with one that was not asked it would be a majority that is raised.
func TestBreakOnAQuorumOneVoteHasEnded(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		lease := locked(t, all.client(t))
		synctest.Wait()
		all[0].Expire("app:lock:job", 4*time.Second) // renewals had not reached it
		all[2].Down(errors.New("refused"))
		b, err := q.Break(t.Context(), shown(t, q), stuck)
		if err != nil {
			t.Fatal(err)
		}
		all[2].Up()
		all[1].Latency(time.Millisecond) // so the others' answers come first
		start := time.Now()
		wantBroken(t, lostTo(t, lease), "alice@web-1", "it is stuck")
		for _, s := range all { // it dies
			s.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropRequest: c.Script == lua.Leave} })
		}
		time.Sleep(b.Left - time.Since(start))
		if l := shown(t, q); l.State != inspect.QuorumFree {
			t.Errorf("%v after the break, when it must be over: %+v", b.Left, l)
		}
	})
}
