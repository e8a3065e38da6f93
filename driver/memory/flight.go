package memory

import (
	"context"
	"fmt"
	"time"
)

// flight is one request and its reply on their way. It needs no goroutine: it
// is moved on by timers, or waits in Server.held, so that a request that its
// caller has given up leaves nothing behind that a test would have to end.
type flight struct {
	Fault
	what  string
	limit time.Duration
	run   func() (any, error) // at the server; mu is held
	done  chan answer
}

type answer struct {
	reply any
	err   error
	at    time.Time
}

func newFlight(what string, limit time.Duration) *flight {
	return &flight{what: what, limit: limit, done: make(chan answer, 1)}
}

// finish answers. Only the first answer counts.
func (f *flight) finish(reply any, err error) {
	select {
	case f.done <- answer{reply, err, time.Now()}:
	default:
	}
}

// launch sends the flights, those that are not delayed in their order.
func (s *Server) launch(flights ...*flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var together []*flight
	for _, f := range flights {
		switch {
		case s.down != nil:
			f.finish(nil, s.down)
		case f.Delay == 0:
			together = append(together, f)
		default:
			s.after(s.latency+f.Delay, func() { s.arrive(f) })
		}
	}
	s.after(s.latency, func() { s.arrive(together...) })
}

// after calls f with mu held, d from now: at once, when d is 0.
func (s *Server) after(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	})
}

// arrive is the moment at which requests come to the server.
func (s *Server) arrive(flights ...*flight) {
	for _, f := range flights {
		switch {
		case s.down != nil: // it went down while they were on their way
			f.finish(nil, s.down)
		case f.DropRequest && f.Err == nil:
		case s.hung:
			s.held = append(s.held, f)
		default:
			s.execute(f)
		}
	}
}

// execute runs a request and sends its reply off.
func (s *Server) execute(f *flight) {
	var reply any
	err := f.Err
	if f.Err == nil || f.DropReply && !f.DropRequest {
		reply, err = f.run()
	}
	if f.Err != nil {
		reply, err = nil, f.Err
	} else if f.DropReply {
		return
	}
	s.after(s.latency+f.DelayReply, func() { f.finish(reply, err) })
}

// await returns the answer, or an error when the limit, counted from start, or
// ctx ends first. An answer that comes at the very end of the limit is too late.
func (s *Server) await(ctx context.Context, f *flight, start time.Time) (any, error) {
	timer := time.NewTimer(max(1, f.limit-time.Since(start))) // 0: golang/go#78156
	defer timer.Stop()
	select {
	case a := <-f.done:
		return f.inTime(a, start)
	case <-timer.C:
	case <-ctx.Done():
	}
	select { // it may have come at the same moment, or before, while another call of EvalAll was waited for
	case a := <-f.done:
		return f.inTime(a, start)
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: %s was not answered: %w", f.what, err)
	}
	return nil, f.late()
}

func (f *flight) inTime(a answer, start time.Time) (any, error) {
	if a.at.Sub(start) >= f.limit {
		return nil, f.late()
	}
	return a.reply, a.err
}

func (f *flight) late() error {
	return fmt.Errorf("memory: %s was not answered within %v: %w", f.what, f.limit, context.DeadlineExceeded)
}
