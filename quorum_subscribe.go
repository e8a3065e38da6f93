package zamok

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// hearing is a subscription to one channel at all members. It is up while it is at one
// of them: what is lost with another is told as a break.
type hearing struct {
	q      *quorum
	handle func(driver.Event)
	cancel context.CancelFunc
	first  chan error // of each member, what came of the first try
	ended  sync.WaitGroup

	mu     sync.Mutex // held around handle
	up     map[*member]bool
	closed bool
}

// hearAgain is the time between two tries to subscribe at a member that refused, or did
// not answer, from the start.
const hearAgain = 2 * time.Second

// Subscribe implements driver.Driver. It returns when a majority has confirmed, or one
// member when no more do.
func (q *quorum) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	run, cancel := context.WithCancel(q.behind(context.WithoutCancel(ctx)))
	h := &hearing{q: q, handle: handle, cancel: cancel, first: make(chan error, len(q.members)), up: make(map[*member]bool)}
	for _, m := range q.members {
		h.ended.Go(func() { h.hear(run, m, limit, channel) })
	}
	var errs []error
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	began := q.c.clock.now()
	up, patient := 0, true
	for up+len(errs) < len(q.members) && up < q.majority && patient {
		select {
		case err := <-h.first:
			if err != nil {
				errs = append(errs, err)
			} else if up++; up == 1 {
				timer.Reset(q.patience(q.c.clock.now().sub(began)))
			}
		case <-timer.C:
			patient = false
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
			patient = false
		}
	}
	if up > 0 {
		return h, nil
	}
	_ = h.Close()
	var refused *driver.ServerError
	if err := errors.Join(errs...); errors.As(err, &refused) {
		return nil, refused // so it is known that trying again at once is of no use
	} else if err != nil {
		return nil, err
	}
	return nil, errNoMajority
}

// hear keeps the subscription at one member.
func (h *hearing) hear(ctx context.Context, m *member, limit time.Duration, channel string) {
	for first := true; ctx.Err() == nil; first = false {
		sub, err := m.d.Subscribe(ctx, limit, channel, func(e driver.Event) { h.event(m, e) })
		if first {
			h.first <- err
		}
		if err == nil {
			<-ctx.Done()
			_ = sub.Close()
			h.lost(m)
			return
		}
		sleep(ctx, hearAgain)
	}
}

// event passes on what happens at one member.
func (h *hearing) event(m *member, e driver.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	switch e.Kind {
	case driver.Message:
		h.handle(e)
	case driver.Subscribed:
		if h.set(m, true); len(h.up) == 1 {
			h.handle(e)
		}
	case driver.Broken:
		h.set(m, false)
		h.handle(e)
		if len(h.up) > 0 { // whoever waits there asks again, and stands elsewhere then
			h.handle(driver.Event{Kind: driver.Subscribed})
		}
	}
}

func (h *hearing) lost(m *member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set(m, false)
}

// set notes whether this subscription is up at a member.
func (h *hearing) set(m *member, up bool) {
	if h.up[m] == up {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if up {
		h.up[m] = true
		m.hears++
	} else {
		delete(h.up, m)
		m.hears--
	}
}

// Close implements driver.Subscription.
func (h *hearing) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.ended.Wait()
	return nil
}
