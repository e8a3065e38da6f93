package scene

import (
	"context"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// playSemaphores and playReaders have nothing to race with: no peer has either. They are
// held to their floor.
func playSemaphores(ctx context.Context, e *Env) error {
	s := e.server()
	if err := e.shared(ctx, s, "permit", locker.Options{Mode: locker.Permit, Permits: 10}); err != nil {
		return err
	}
	return e.sharing(ctx, s, 4, func(int) locker.Options { return locker.Options{Mode: locker.Permit, Permits: 4} })
}

// playReaders has a writer for each three readers, so that runs of readers come to be.
func playReaders(ctx context.Context, e *Env) error {
	s := e.server()
	for _, as := range []struct {
		name string
		mode locker.Mode
	}{{"reader", locker.Reader}, {"writer", locker.Writer}} {
		if err := e.shared(ctx, s, as.name, locker.Options{Mode: as.mode}); err != nil {
			return err
		}
	}
	return e.sharing(ctx, s, 0, func(i int) locker.Options {
		if i%4 == 0 {
			return locker.Options{Mode: locker.Writer}
		}
		return locker.Options{Mode: locker.Reader}
	})
}

// shared is an uncontended cycle of that.
func (e *Env) shared(ctx context.Context, s *drivertest.Server, what string, o locker.Options) error {
	all, err := e.runners(s, o, 1, what)
	if err != nil {
		return err
	}
	defer closeAll(all)
	if err := takeTurns(ctx, s, all, e.count(8), e.span(50*time.Millisecond)); err != nil {
		return err
	}
	for _, r := range all {
		e.add(r.kind, what+" µs", micros(r.time()))
		e.add(r.kind, what+" server µs", micros(r.serverCPU()))
	}
	return nil
}

// sharing is a crowd, one library after the other.
func (e *Env) sharing(ctx context.Context, s *drivertest.Server, room int, o func(i int) locker.Options) error {
	for i := range e.Kinds {
		k := e.Kinds[(i+e.Rep)%len(e.Kinds)]
		takes, done, err := clientsOf(k, s.Addr(), k.Name, 16, o)
		if err != nil {
			return err
		}
		t, _, took, err := newCrowd(takes, 5*time.Millisecond, room).during(ctx, s, e.span(200*time.Millisecond), e.span(time.Second))
		done()
		if err != nil {
			return err
		}
		e.add(k, "acquisitions/s", float64(t.acquired())/took.Seconds())
		e.add(k, "longest wait ms", millis(quantile(t.waits, 1)))
	}
	return nil
}
