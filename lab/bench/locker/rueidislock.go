package locker

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockKind has one key a lock and not three, since all three would be on one
// server, and no invalidations of its own writes, as its documentation recommends for a
// server of today. TryNextAfter is the time limit of a try, of which the default, 20 ms,
// is less than some round trips here.
func rueidislockKind() Kind {
	return Kind{
		Name: "rueidislock/rueidis", Family: "rueidislock", On: "rueidis", Sends: scripted(), Peer: true, Waits: true, Renews: true,
		Open: func(addr string, o Options) (Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
				KeyValidity:  o.ttl(), TryNextAfter: time.Second, KeyMajority: 1, NoLoopTracking: true,
			})
			if err != nil {
				return nil, err
			}
			return rueidislockClient{l}, nil
		},
	}
}

type rueidislockClient struct{ rueidislock.Locker }

func (c rueidislockClient) Of(name string) Take {
	return func(ctx context.Context) (Held, error) {
		under, cancel, err := c.WithContext(ctx, name)
		return &rueidislockHeld{under: under, cancel: cancel}, err
	}
}

type rueidislockHeld struct {
	under  context.Context
	cancel context.CancelFunc
}

// Release returns when the key is deleted: cancel waits for that.
func (h *rueidislockHeld) Release(context.Context) error {
	h.cancel()
	return nil
}

func (h *rueidislockHeld) Lost() <-chan struct{} { return h.under.Done() }

// Fence is that there is none.
func (h *rueidislockHeld) Fence() int64 { return 0 }
