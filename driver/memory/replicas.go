package memory

import (
	"context"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// replicas are what a Server is told to have. mu of Server guards it.
type replicas struct {
	count int
	lag   time.Duration
}

// Replicas sets how many replicas the server has, and how long each is behind. There
// are none at first. They are only counted, by EvalWait: nothing can be read of them.
func (s *Server) Replicas(count int, lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = replicas{count, lag}
}

// EvalWait runs one script, as Eval, and answers when so many replicas have it, or
// the timeout has passed.
func (s *Server) EvalWait(ctx context.Context, call driver.Call, count int, timeout time.Duration) (any, int64, error) {
	if err := admit(ctx, call.Limit); err != nil {
		return nil, 0, err
	}
	start := time.Now()
	f := s.prepare(call)
	run := f.run
	f.run = func() (any, error) {
		reply, err := run()
		if err != nil {
			return nil, err
		}
		r, acked := s.replicas, 0
		if r.lag <= timeout {
			acked = r.count
		}
		switch {
		case count <= 0: // nobody is waited for
		case acked < count:
			f.DelayReply += timeout
		default:
			f.DelayReply += r.lag
		}
		return []any{reply, int64(acked)}, nil
	}
	s.launch(f)
	v, err := s.await(ctx, f, start)
	if err != nil {
		return nil, 0, err
	}
	both := v.([]any)
	return both[0], both[1].(int64), nil
}
