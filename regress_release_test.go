package zamok_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/zamoktest"
)

// a library that repeats after a while, in which others use what was released.
type later struct {
	driver.Driver
	between func()
}

func (d *later) Eval(ctx context.Context, call driver.Call) (any, error) {
	if call.Script.Name() == "release" && d.between != nil {
		_, _ = d.Driver.Eval(ctx, call)
		between := d.between
		d.between = nil
		pass(10 * time.Millisecond)
		between()
	}
	return d.Driver.Eval(ctx, call)
}

func TestLibraryRepeatsReleaseAfterOthers(t *testing.T) {
	for what, between := range map[string]func(*testing.T, *zamok.Client){
		"another lock of the slot": func(t *testing.T, rival *zamok.Client) { lock(t, rival.Mutex("other{1}", nil)) },
		"the same lock":            func(t *testing.T, rival *zamok.Client) { lock(t, rival.Mutex("job{1}", nil)) },
		"taken and given back":     func(t *testing.T, rival *zamok.Client) { release(t, lock(t, rival.Mutex("job{1}", nil))) },
		"readers": func(t *testing.T, rival *zamok.Client) {
			if _, err := rival.RWMutex("job{1}", nil).RLock(t.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
				d := &later{Driver: s}
				c, _ := zamok.New(d, nil)
				defer c.Close()
				rival := s.Client()
				l, err := c.RWMutex("job{1}", nil).Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				d.between = func() { between(t, rival) }
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("Release, which the library repeated: %v", err)
				}
			})
		})
	}
}

func TestLibraryRepeatsReleaseToken(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		d := &later{Driver: s}
		c, _ := zamok.New(d, nil)
		defer c.Close()
		rival := s.Client()
		token := lock(t, rival.Mutex("job", nil)).Token()
		d.between = func() { lock(t, rival.Mutex("job", nil)) }
		if err := c.Mutex("job", nil).ReleaseToken(t.Context(), token); err != nil {
			t.Errorf("ReleaseToken, which the library repeated: %v", err)
		}
	})
}

// Who learned of a hand-over by asking releases it, and only then the message comes: it is
// no orphan, whose lock is to be given back beside the release that is on its way.
func TestMessageThatComesDuringTheRelease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		holder, waiter, next := s.Client(), s.Client(), s.Client()
		old := lock(t, holder.Mutex("job", nil))
		s.InterceptMessage(func(string, string) memory.MessageFault { return memory.MessageFault{Delay: 2 * time.Millisecond} })
		got := make(chan *zamok.Lease, 2)
		go func() { got <- lock(t, waiter.Mutex("job", nil)) }()
		s.AwaitWaiters("job", 1)
		go func() { got <- lock(t, next.Mutex("job", nil)) }()
		s.AwaitWaiters("job", 2)
		var asks, gives atomic.Int32
		s.Intercept(func(c driver.Call) memory.Fault {
			switch {
			case c.Script.Name() == "acquire" && asks.Add(1) == 1:
				release(t, old) // just before the first in the queue asks
			case c.Script.Name() == "release" && gives.Add(1) == 2:
				return memory.Fault{Delay: 5 * time.Millisecond} // the message comes meanwhile
			}
			return memory.Fault{}
		})
		if err := (<-got).Release(t.Context()); err != nil || gives.Load() != 2 {
			t.Errorf("Release, one of %d: %v", gives.Load()-1, err)
		}
		release(t, <-got)
	})
}

// A slow answer does not hide that another had the lock before its holder released it.
func TestSlowReleaseOfWhatWasTaken(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *zamoktest.Server) {
		l := lock(t, s.Client().Mutex("job", nil))
		pass(time.Second)
		s.Del("lock:job")
		lock(t, s.Client().Mutex("job", nil))
		pass(50 * time.Millisecond)
		s.Latency(20 * time.Millisecond)
		var lost *zamok.LostError
		if err := l.Release(t.Context()); !errors.As(err, &lost) || lost.Reason != zamok.LostTaken {
			t.Errorf("Release = %v, want that it was taken", err)
		}
	})
}
