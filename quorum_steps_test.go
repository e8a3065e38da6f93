package zamok_test

import (
	"context"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/memory"
)

// A call that ends, and a client that is closed, at each step of a lock and a release
// whose requests go with others', which are never answered: nobody waits for those, and
// no vote is left.
func TestQuorumEndsAtEachStep(t *testing.T) {
	for at := 100 * time.Microsecond; at < 8*time.Millisecond; at += 100 * time.Microsecond {
		for _, hung := range []bool{false, true} {
			for _, closes := range []bool{false, true} {
				inQuorum(t, 3, func(t *testing.T, all members) {
					c := all.client(t)
					release(t, lock(t, c.Mutex("job", nil)))
					if hung {
						all[1].Hang()
					}
					for _, s := range all {
						once(s, "vote", memory.Fault{DropReply: true})
					}
					other, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer stop()
					go func() { _, _ = c.Mutex("other", nil).TryLock(other) }()
					pass(300 * time.Microsecond)
					ctx, end := context.WithCancel(t.Context())
					defer end()
					closed := make(chan time.Duration, 1)
					go func() {
						pass(at)
						start := time.Now()
						if closes {
							_ = c.Close()
						} else {
							end()
						}
						closed <- time.Since(start)
					}()
					start := time.Now()
					l, err := c.Mutex("job", nil).Lock(ctx)
					locked := time.Since(start)
					if err == nil {
						_ = l.Release(ctx)
					}
					if released := time.Since(start) - locked; locked > 20*time.Millisecond || released > 20*time.Millisecond {
						t.Errorf("ended after %v, a member hangs %v, closed %v: Lock took %v, Release %v; %v", at, hung, closes, locked, released, err)
					}
					if took := <-closed; took > 2500*time.Millisecond {
						t.Errorf("after %v, a member hangs %v: Close took %v", at, hung, took)
					}
					if hung {
						all[1].Unhang()
					}
					pass(time.Second) // no TTL has passed
					all.left(t)
				})
			}
		}
	}
}
