package inspect_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// members are three servers, m0 to m2, that nobody has used.
type members []*memory.Server

func inQuorum(t *testing.T, f func(t *testing.T, all members, q *inspect.Quorum)) {
	synctest.Test(t, func(t *testing.T) {
		all := members{memory.New(), memory.New(), memory.New()}
		q, err := inspect.NewQuorum(all.nodes(), "app:")
		if err != nil {
			t.Fatal(err)
		}
		f(t, all, q)
	})
}

func (all members) nodes() (nodes []zamok.Node) {
	for i, s := range all {
		nodes = append(nodes, zamok.Node{Name: fmt.Sprint("m", i), Driver: s})
	}
	return nodes
}

func (all members) client(t *testing.T) *zamok.Client {
	t.Helper()
	c, err := zamok.NewQuorum(all.nodes(), &zamok.Config{Prefix: "app:", Name: "reports"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func stamped(t *testing.T, q *inspect.Quorum) {
	t.Helper()
	if _, err := q.Stamp(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

func states(all []inspect.Member) (s string) {
	for _, m := range all {
		s += string(m.State) + ";"
	}
	return s
}

func TestStampIsOfAllMembersOrNone(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		if got := states(q.Members(t.Context())); got != "new;new;new;" {
			t.Errorf("at first: %s", got)
		}
		all[1].Set("theirs", "x", 0)
		if _, err := q.Stamp(t.Context(), time.Minute); !errors.Is(err, inspect.ErrUsed) || len(all[0].Keys()) > 0 {
			t.Errorf("with one in use: %v, and the first has %v", err, all[0].Keys())
		}
		all[1].Del("theirs")
		for range 2 {
			stamped(t, q)
			if got := states(q.Members(t.Context())); got != "serves;serves;serves;" {
				t.Errorf("stamped: %s", got)
			}
		}
		if _, err := q.Stamp(t.Context(), 2*time.Minute); !errors.Is(err, inspect.ErrUsed) {
			t.Errorf("with another time: %v", err)
		}
	})
}

// A member that lost its data looks like a new one, and may have voted.
func TestStampDoesNotTrustAnEmptyMemberAmongOthers(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		all[2].Wipe()
		got, err := q.Stamp(t.Context(), time.Minute)
		if !errors.Is(err, inspect.ErrUsed) || states(got) != "serves;serves;new;" || !got[2].Empty {
			t.Errorf("%v, %s", err, states(got))
		}
		lease := locked(t, all.client(t))
		synctest.Wait()
		if m := q.Members(t.Context())[2]; m.State != inspect.MemberQuarantine || m.Left <= 0 || m.Left > time.Minute {
			t.Errorf("after its first use: %+v", m)
		}
		_ = lease.Release(t.Context())
	})
}

func locked(t *testing.T, c *zamok.Client) *zamok.Lease {
	t.Helper()
	return got(t, c.Mutex("job", &zamok.MutexConfig{Reason: "monthly"}).Lock)
}

func TestMembersThatAreNone(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		stamped(t, q)
		nodes := all.nodes()
		nodes[2].Driver = struct{ driver.Driver }{all[0]}
		twice, err := inspect.NewQuorum(nodes, "app:")
		if err != nil {
			t.Fatal(err)
		}
		if got := twice.Members(t.Context()); states(got) != "serves;serves;same server;" || got[2].Twin != "m0" || got[2].Votes() {
			t.Errorf("%+v", got)
		}
		nodes = all.nodes()
		nodes[2].Name = "another"
		other, err := inspect.NewQuorum(nodes, "app:")
		if err != nil {
			t.Fatal(err)
		}
		if got := states(other.Members(t.Context())); got != "other terms;other terms;other terms;" {
			t.Error(got)
		}
	})
}

func TestShowOnAQuorum(t *testing.T) {
	inQuorum(t, func(t *testing.T, all members, q *inspect.Quorum) {
		show := func() inspect.QuorumLock {
			t.Helper()
			l, err := q.Show(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		stamped(t, q)
		if l := show(); l.State != inspect.QuorumFree || l.Serving != 3 || l.Majority != 2 {
			t.Errorf("at first: %+v", l)
		}
		lease := locked(t, all.client(t))
		time.Sleep(2 * time.Second) // until the process has said who it is
		waits := stands(t, all.client(t).Mutex("job", nil).Lock)
		time.Sleep(2 * time.Second)
		l := show()
		h := l.Holder
		if l.State != inspect.QuorumHeld || l.Got != 3 || h.Token != lease.Token() || h.Fence != lease.Fence() || h.Service != "reports" || h.Reason != "monthly" || h.Left <= 0 || len(l.Waiters) != 1 {
			t.Errorf("held: %+v", l)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-waits; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if l = show(); l.State != inspect.QuorumFree || l.Got != 0 {
			t.Errorf("released: %+v", l)
		}
		all[0].Set("app:lock:job", "theirs", time.Minute)
		if l = show(); l.State != inspect.QuorumFree || l.Got != 0 {
			t.Errorf("one vote: %+v", l)
		}
		all[1].Hang()
		if l = show(); l.State != inspect.QuorumUnknown || l.Got != 1 || l.Holder.Token != "theirs" || l.Votes[1].State != inspect.MemberUnreachable || l.Serving != 2 {
			t.Errorf("one vote, and one hangs: %+v", l)
		}
	})
}
