package zamok_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/internal/lua"
)

// delayed delays the requests of a script at a member.
func delayed(s *memory.Server, script string, d time.Duration) {
	s.Intercept(func(c driver.Call) memory.Fault {
		if c.Script.Name() == script {
			return memory.Fault{Delay: d}
		}
		return memory.Fault{}
	})
}

// TestQuorumTakenFromTwoIsALoss: the lock was deleted at both members that had voted for it,
// and another took it there, long before the release. The member that nobody has a vote of
// answers before the second of the other's.
func TestQuorumTakenFromTwoIsALoss(t *testing.T) {
	for _, late := range []time.Duration{0, 10 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			inQuorum(t, 3, func(t *testing.T, all members) {
				first, second := all.client(t).Mutex("job", nil), all.client(t).Mutex("job", nil)
				release(t, lock(t, second))
				release(t, lock(t, first))
				once(all[2], "vote", memory.Fault{DropRequest: true})
				l := lock(t, first)
				once(all[2], "vote", memory.Fault{DropRequest: true})
				all[0].Del("lock:job")
				all[1].Del("lock:job")
				pass(100 * time.Millisecond)
				other := lock(t, second)
				pass(100 * time.Millisecond)
				if l.Err() != nil {
					t.Fatal("the test tries nothing: it knows")
				}
				delayed(all[0], "leave", 10*time.Millisecond)
				delayed(all[1], "leave", late+10*time.Millisecond)
				delayed(all[2], "leave", 10*time.Millisecond)
				var lost *zamok.LostError
				err := l.Release(t.Context())
				if !errors.As(err, &lost) {
					t.Errorf("fence %d was another's for 100 ms when fence %d was released: %v", other.Fence(), l.Fence(), err)
				} else if lost.Reason != zamok.LostTaken {
					t.Errorf("reason %s", lost.Reason)
				}
				_ = other.Release(context.Background())
			})
		})
	}
}

// TestQuorumRepeatedReleaseWithClocksApart: as TestQuorumLibraryRepeatsRelease, but another
// takes the lock after the first try of the release, and the clock of the member that is
// told of it only once is 30 ms ahead.
func TestQuorumRepeatedReleaseWithClocksApart(t *testing.T) {
	for _, ahead := range []time.Duration{0, 30 * time.Millisecond} {
		t.Run(ahead.String(), func(t *testing.T) {
			inQuorum(t, 3, func(t *testing.T, all members) {
				all[1].Step(ahead)
				second := all.client(t).Mutex("job", nil) // it does not know the clocks yet
				taken := make(chan *zamok.Lease, 1)
				first := all.clientOver(t, func(d driver.Driver) driver.Driver {
					if d == all[0] {
						return &between{Driver: d, do: func() {
							l, err := second.Lock(context.Background())
							if err != nil {
								t.Error(err)
							}
							taken <- l
						}}
					}
					return d
				}).Mutex("job", nil)
				once(all[2], "vote", memory.Fault{DropRequest: true})
				l := lock(t, first)
				pass(200 * time.Millisecond)
				delayed(all[1], "leave", 300*time.Millisecond)
				delayed(all[2], "leave", 30*time.Millisecond)
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("it was held until it was released: %v", err)
				}
				_ = (<-taken).Release(context.Background())
			})
		})
	}
}

// between is a member whose library sends a release again, after something happened.
type between struct {
	driver.Driver
	do func()
}

func (d *between) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script == lua.Leave && d.do != nil {
		if _, err := d.Driver.Eval(ctx, call); err != nil {
			return nil, err
		}
		do := d.do
		d.do = nil
		pass(8 * time.Millisecond)
		do()
	}
	return d.Driver.Eval(ctx, call)
}

// odd is a member that answers a release as no script of zamok does.
type odd struct{ driver.Driver }

func (d odd) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script == lua.Leave {
		return []any{"odd", "0", int64(0), int64(0), int64(0), int64(0), ""}, nil
	}
	return d.Driver.Eval(ctx, call)
}

// TestQuorumOddReplies are an error, and no reason to panic.
func TestQuorumOddReplies(t *testing.T) {
	inQuorum(t, 3, func(t *testing.T, all members) {
		m := all.clientOver(t, func(d driver.Driver) driver.Driver { return odd{d} }).Mutex("job", nil)
		if err := lock(t, m).Release(t.Context()); !errors.Is(err, zamok.ErrUnavailable) {
			t.Errorf("Release: %v", err)
		}
	})
}
