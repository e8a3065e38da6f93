package scene

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zamok-go/zamok/lab/bench/locker"
)

// playLine is the one place in which goroutines of one client meet: zamok's pass the lock on
// among themselves, and all others ask the server each time.
func playLine(ctx context.Context, e *Env) error {
	k, s := e.Kinds[0], e.server()
	c, err := k.Open(s.Addr(), locker.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	span := e.span(1300 * time.Millisecond)
	rate, err := share(ctx, c, "job", 64, span)
	if err != nil {
		return err
	}
	e.add(k, "acquisitions/s", rate/span.Seconds())
	return nil
}

// share lets goroutines want one lock for a while, and counts how often it was taken.
// A fence that does not grow is an error.
func share(ctx context.Context, c locker.Client, name string, goroutines int, span time.Duration) (float64, error) {
	// Not a deadline, which a library may look at: it could give up a moment before.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(span, cancel).Stop()
	var all sync.WaitGroup
	var fence atomic.Int64 // of the last holder; the lock guards it, unless that is broken
	var wrong, failed atomic.Pointer[error]
	counts := make([]int, goroutines)
	for i := range goroutines {
		take := c.Of(name)
		all.Go(func() {
			for ctx.Err() == nil {
				h, err := take(ctx)
				if err != nil {
					if ctx.Err() == nil {
						failed.Store(&err)
					}
					return
				}
				if f, last := h.Fence(), fence.Load(); f != 0 && f <= last {
					err := fmt.Errorf("fence %d after %d", f, last)
					wrong.Store(&err)
				} else {
					fence.Store(f)
				}
				counts[i]++
				if err := h.Release(context.Background()); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, p := range []*error{wrong.Load(), failed.Load()} {
		if p != nil {
			return 0, *p
		}
	}
	n := 0
	for _, k := range counts {
		n += k
	}
	return float64(n), nil
}
