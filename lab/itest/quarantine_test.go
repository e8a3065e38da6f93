package itest

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// With a quarantine no two hold at a time, whatever the server lost; without it they
// are seen to. Each round has a holder that is cut off just before the loss, so it
// learns nothing and believes in its lease until the end.

const (
	quarantine = time.Second // and the TTL
	lanes      = 5           // of rounds side by side, as a round mostly waits
)

// arena is what the rounds of a lane are run on.
type arena struct {
	primary, replica server // no replica where the server itself loses the data
	way              *link  // of the holder
	clients          *link  // of the others
	replication      *link
}

// losses are the ways to lose a lease without its holder hearing of it.
var losses = []struct {
	name     string
	replicas bool
	lose     func(t *testing.T, a *arena)
}{
	{"restart without persistence", false, func(_ *testing.T, a *arena) { a.primary.Restart() }},
	{"FLUSHALL", false, func(_ *testing.T, a *arena) { a.primary.MustDo("FLUSHALL") }},
	{"failover that lost the last writes", true, func(t *testing.T, a *arena) { a.failover(t) }},
}

func newArena(t *testing.T, replicas bool) *arena {
	t.Helper()
	a := &arena{primary: startServer(t, "--repl-diskless-sync-delay", "0")}
	a.way, a.clients = startLink(t, a.primary.Addr()), startLink(t, a.primary.Addr())
	if replicas {
		a.replication = startLink(t, a.primary.Addr())
		a.replica = startServer(t, "--repl-diskless-sync-delay", "0")
		a.follow(a.replica)
	}
	return a
}

// follow makes the server a replica, by the way that can be cut.
func (a *arena) follow(s server) {
	host, port, _ := net.SplitHostPort(a.replication.listener.Addr().String())
	s.MustDo("REPLICAOF", host, port)
}

// part cuts the replica off once it has what the primary has.
func (a *arena) part(t *testing.T) {
	t.Helper()
	within(t, patience, "the replica is in step", func() bool {
		info, _ := a.replica.MustDo("INFO", "replication").(string)
		return strings.Contains(info, "master_link_status:up") && !taken(t, a.replica) &&
			a.replica.get(t, "zamok:node") == a.primary.get(t, "zamok:node")
	})
	a.replication.lay("")
	a.replication.cut()
}

// taken says whether somebody has what the rounds are about.
func taken(t *testing.T, s server) bool { return s.has(t, "lock:job") || s.has(t, "semaphore:job") }

// failover makes the replica the primary, and the other way round.
func (a *arena) failover(t *testing.T) {
	t.Helper()
	if taken(t, a.replica) {
		t.Error("the replica has the lock, so nothing will be lost")
	}
	a.replica.MustDo("REPLICAOF", "NO", "ONE")
	a.replication.lay(a.replica.Addr())
	a.primary, a.replica = a.replica, a.primary
	a.follow(a.replica)
}

// round says whether two held at a time.
func (a *arena) round(t *testing.T, holder, rival taker, lose func(t *testing.T, a *arena)) (overlap bool) {
	t.Helper()
	release(t, lock(t, rival)) // the last quarantine is over then
	if a.replication != nil {
		a.part(t)
	}
	older := lock(t, holder)
	a.way.lay("")
	a.way.cut()
	lose(t, a)
	a.clients.lay(a.primary.Addr())
	a.clients.cut()

	newer := lock(t, rival)
	overlap = older.Err() == nil
	if !overlap && !errors.Is(older.Err(), zamok.ErrLost) {
		t.Errorf("the older lease: %v", older.Err())
	}
	if newer.Fence() <= older.Fence() {
		t.Errorf("fence %d after %d", newer.Fence(), older.Fence())
	}
	if err := newer.Release(t.Context()); err != nil && !errors.Is(err, zamok.ErrUnavailable) { // a slow machine: it goes on behind
		t.Errorf("the newer lease: %v", err)
	}
	a.way.lay(a.primary.Addr())
	if err := older.Release(t.Context()); err != nil && !errors.Is(err, zamok.ErrLost) {
		t.Logf("the older lease is not released: %v", err)
	}
	return overlap
}

// contests are of what the holder has and the rival wants.
var contests = []struct{ holder, rival maker }{{mutexOf, mutexOf}, {readerOf, writerOf}, {permitOf(1), permitOf(1)}}

// rounds runs so many for each loss, with each library in turn, and returns in how many
// of them two held at a time.
func rounds(t *testing.T, n int, cfg zamok.Config, expect func(t *testing.T, overlap bool)) {
	t.Parallel()
	for _, loss := range losses {
		for lane := range lanes {
			t.Run(loss.name, func(t *testing.T) {
				t.Parallel()
				a, c := newArena(t, loss.replicas), contests[lane%len(contests)]
				holder := c.holder(libraries[lane%2].client(t, a.way.url(), &cfg), "job", nil)
				rival := c.rival(libraries[(lane/2)%2].client(t, a.clients.url(), &cfg), "job", nil)
				for range (n + lanes - 1) / lanes {
					expect(t, a.round(t, holder, rival, loss.lose))
				}
			})
		}
	}
}

func TestQuarantineLeavesOneHolder(t *testing.T) {
	cfg := zamok.Config{Quarantine: quarantine, TTL: quarantine}
	rounds(t, number(t, "ZAMOK_QUARANTINE_ROUNDS", 50), cfg, func(t *testing.T, overlap bool) {
		if overlap {
			t.Error("two held at a time")
		}
	})
}

// TestNoQuarantineLeavesTwo is the test of the test.
func TestNoQuarantineLeavesTwo(t *testing.T) {
	cfg := zamok.Config{TTL: 10 * time.Second} // so long that a loss is over before
	rounds(t, 2*lanes, cfg, func(t *testing.T, overlap bool) {
		if !overlap {
			t.Error("two were not seen to hold at a time, so that the other test shows nothing")
		}
	})
}
