package itest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// A server that is given twice, or a replica, is no vote of its own: with another node
// down as well, nobody is granted anything, and the error says which of them it is.
func TestQuorumMemberThatIsNoServerOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(t *testing.T, all nodes) nodes
		says string
	}{
		{"the same twice", func(_ *testing.T, all nodes) nodes { return nodes{all[0], all[1], all[1]} }, "are one server"},
		{"a primary and its replica", func(t *testing.T, all nodes) nodes {
			host, port, err := net.SplitHostPort(all[1].Addr())
			if err != nil {
				t.Fatal(err)
			}
			all[2].MustDo("REPLICAOF", host, port)
			return all
		}, "is a replica"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := startNodes(t, 3, time.Minute)
			list := c.make(t, all)
			all[0].Kill()
			m := list.client(t, 0, zamok.Config{GiveUp: 3 * time.Second}).Mutex("job", nil)
			_, err := m.TryLock(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("TryLock: %v", err)
			}
			if all[1].has(t, "lock:job") {
				within(t, patience, "its vote is given back", func() bool { return !all[1].has(t, "lock:job") })
			}
		})
	}
}
