package itest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/inspect"
)

// An operator breaks a lock: its holder is told at once, and keeps it until it has
// stopped; then who waits has it. Also when a node is down, or hangs.
func TestQuorumBreak(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name string
		fail func(s server)
		heal func(s server)
	}{
		{"all answer", func(server) {}, func(server) {}},
		{"one is down", server.Kill, server.Restart},
		{"one hangs", server.Pause, server.Resume},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := startNodes(t, 3, time.Minute)
			holder := all.client(t, i, slowConfig)
			l := lock(t, holder.Mutex("job", nil))
			within(t, patience, "all have it", func() bool { return all.have(t, "job") == 3 })
			inbox := "zamok:inbox:" + holder.ID()
			for _, s := range all { // a holder of a long lease listens for operators
				within(t, patience, "it listens", func() bool { return s.MustDo("PUBSUB", "NUMSUB", inbox).([]any)[1] == int64(1) })
			}
			waiter := goLock(t.Context(), all.client(t, i+1, slowConfig).Mutex("job", nil))
			within(t, patience, "somebody waits", func() bool {
				return all[0].waiting(t, "job")+all[1].waiting(t, "job")+all[2].waiting(t, "job") == 1
			})
			q, err := inspect.NewQuorum(all.drivers(t, i), "") // rueidis needs a server to begin with
			if err != nil {
				t.Fatal(err)
			}
			c.fail(all[2])
			shown, err := q.Show(t.Context(), "job")
			if err != nil || shown.State != inspect.QuorumHeld || shown.Holder.Token != l.Token() {
				t.Fatalf("Show: %+v, %v", shown, err)
			}
			start := time.Now()
			b, err := q.Break(t.Context(), shown, &inspect.BreakConfig{By: "ann@ops", Why: "stuck"})
			if err != nil || !b.Asked || b.Holder.Token != l.Token() || b.Fence != l.Fence() || b.Left > time.Minute || b.AuditErr != nil {
				t.Fatalf("Break: %+v, %v", b, err)
			}
			if lost := lossOf(t, l); lost.Reason != zamok.LostBroken || lost.Operator != "ann@ops" || lost.Why != "stuck" {
				t.Errorf("lost: %v", lost)
			}
			if slow(start, time.Now(), time.Second) {
				t.Errorf("told only after %v", time.Since(start))
			}
			if len(waiter) > 0 {
				t.Error("another has it before it was released")
			}
			if err := l.Release(context.Background()); !errors.Is(err, zamok.ErrLost) {
				t.Errorf("Release: %v", err)
			}
			g := receive(t, waiter, "lease")
			if g.err != nil || g.lease.Fence() <= l.Fence() {
				t.Fatalf("the next one: %+v after %d", g, l.Fence())
			}
			c.heal(all[2])
			release(t, g.lease)
			all.mustClear(t, "job")
		})
	}
}
