package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zamok-go/zamok"
)

// tryOnce: three workers try one lock at the same moment.
func tryOnce(s *scene) verdict {
	workers, err := s.cast("worker-1", "worker-2", "worker-3")
	if err != nil {
		return failed("%v", err)
	}
	start := make(chan struct{})
	leases, errs := make([]*zamok.Lease, len(workers)), make([]error, len(workers))
	var all sync.WaitGroup
	for i, w := range workers {
		all.Go(func() {
			<-start
			leases[i], errs[i] = w.mutex.TryLock(s.ctx)
			if errs[i] != nil {
				w.say("no: %s", plainly(errs[i]))
			} else {
				w.say("has the lock, fence %d", leases[i].Fence())
			}
		})
	}
	close(start)
	all.Wait()
	winners := 0
	for i := range workers {
		switch {
		case errs[i] == nil:
			winners++
		case !errors.Is(errs[i], zamok.ErrHeld):
			return failed("%s: %v", workers[i].name, errs[i])
		}
	}
	if winners != 1 {
		return failed("%d of 3 got the lock at the same time", winners)
	}
	return ok("1 of 3 got the lock, the others were told who has it")
}

// plainly words an error in a few words.
func plainly(err error) string {
	var held *zamok.HeldError
	var lost *zamok.LostError
	if errors.As(err, &lost) {
		return "lost: " + string(lost.Reason)
	}
	if errors.As(err, &held) {
		return "held by " + held.Holder.String()
	}
	return strings.TrimPrefix(err.Error(), "zamok: ")
}

// handOver: the release itself makes the waiter the owner.
func handOver(s *scene) verdict {
	cast, err := s.cast("owner", "waiter")
	if err != nil {
		return failed("%v", err)
	}
	owner, waiter := cast[0], cast[1]
	lease, err := owner.mutex.Lock(s.ctx)
	if err != nil {
		return failed("%v", err)
	}
	owner.say("has the lock, fence %d", lease.Fence())
	queue, err := waiter.lockBehind()
	if err != nil {
		return failed("%v", err)
	}
	s.pause(s.ttl / 4)
	asked, released := waiter.wire.asks(), time.Now()
	if err := lease.Release(s.ctx); err != nil {
		return failed("release: %v", err)
	}
	g := <-queue
	if g.err != nil {
		return failed("the waiter never got the lock: %v", g.err)
	}
	took := g.at.Sub(released)
	asked = waiter.wire.asks() - asked
	waiter.say("has the lock %s after the release, fence %d", short(took), g.lease.Fence())
	if i := <-waiter.acquired; !i.HandedOver || asked > 0 {
		return failed("it was not handed the lock: it asked %d more times and had it %s after the release", asked, short(took))
	}
	return ok("the release made the waiter the owner and woke it, in %s", short(took))
}

// inOrder: five wait, each is served in its turn.
func inOrder(s *scene) verdict {
	cast, err := s.cast("owner", "first", "second", "third", "fourth", "fifth")
	if err != nil {
		return failed("%v", err)
	}
	lease, err := cast[0].mutex.Lock(s.ctx)
	if err != nil {
		return failed("%v", err)
	}
	cast[0].say("has the lock")
	var mu sync.Mutex
	var arrived, served []string
	var all sync.WaitGroup
	for _, a := range cast[1:] {
		queue, err := a.lockBehind()
		if err != nil {
			return failed("%v", err)
		}
		arrived = append(arrived, a.name)
		all.Go(func() {
			g := <-queue
			if g.err != nil {
				return
			}
			mu.Lock()
			served = append(served, a.name)
			mu.Unlock()
			a.say("has the lock, fence %d", g.lease.Fence())
			s.pause(s.ttl / 50)
			_ = g.lease.Release(s.ctx)
		})
	}
	cast[0].say("releases it")
	if err := lease.Release(s.ctx); err != nil {
		return failed("release: %v", err)
	}
	all.Wait()
	if !slices.Equal(arrived, served) {
		return failed("they came as %s and were served as %s", strings.Join(arrived, ", "), strings.Join(served, ", "))
	}
	return ok("served as they came: %s", strings.Join(served, ", "))
}

func short(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
