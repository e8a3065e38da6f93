package broken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/traffic"
)

// Redlock is a lock that the majority of its nodes decides, each of which counts fences of
// its own. It implements traffic.Engine, for mutexes.
type Redlock struct {
	flaw  Flaw
	ttl   time.Duration
	id    string
	nodes []*redis.Client
	next  atomic.Int64
}

// NewRedlock makes the client of that number of a process, for the nodes at addrs.
func NewRedlock(flaw Flaw, addrs []string, proc string, number int, ttl time.Duration) *Redlock {
	e := &Redlock{flaw: flaw, ttl: ttl, id: fmt.Sprint(proc, "-", number)}
	for _, addr := range addrs {
		e.nodes = append(e.nodes, redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ReadTimeout: ttl / 4}))
	}
	return e
}

// Close implements traffic.Engine.
func (e *Redlock) Close() error {
	var errs []error
	for _, n := range e.nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// vote takes the lock of one node, and counts.
//
//	KEYS: lock, fence
//	ARGV: token, TTL in ms
//	RETURNS: the fence, or nothing
var vote = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return false
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return redis.call('INCR', KEYS[2])
`)

// writeBack raises the counter of a node that the token still has.
var writeBack = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[2], math.max(redis.call('GET', KEYS[2]) or 0, ARGV[2]))
return 1
`)

// Take implements traffic.Engine.
func (e *Redlock) Take(ctx context.Context, w traffic.Want) (traffic.Lease, error) {
	l := &majority{Redlock: e, token: fmt.Sprint(e.id, "-", e.next.Add(1)), keys: []string{"lock:" + w.Name, "zamok:fence:{redlock}"}}
	for {
		if l.granted(ctx) {
			l.ctx, l.end = context.WithDeadline(context.Background(), l.deadline)
			return l, nil
		}
		_ = l.free()
		if !w.Wait || ctx.Err() != nil {
			return nil, errors.Join(zamok.ErrHeld, ctx.Err())
		}
		time.Sleep(poll)
	}
}

// majority implements traffic.Lease.
type majority struct {
	*Redlock
	token    string
	keys     []string
	fence    int64
	deadline time.Time
	ctx      context.Context
	end      context.CancelFunc
}

// granted asks all nodes, and has the largest of their fences.
func (l *majority) granted(ctx context.Context) bool {
	l.deadline, l.fence = time.Now().Add(l.ttl-margin), 0
	var with []*redis.Client
	for _, n := range l.nodes {
		if fence, err := vote.Run(ctx, n, l.keys, l.token, l.ttl.Milliseconds()).Int64(); err == nil {
			with = append(with, n)
			l.fence = max(l.fence, fence)
		}
	}
	if l.flaw != ForgetsFences {
		with = slices.DeleteFunc(with, func(n *redis.Client) bool {
			done, err := writeBack.Run(ctx, n, l.keys, l.token, l.fence).Int()
			return err != nil || done == 0
		})
	}
	return len(with) > len(l.nodes)/2 && l.Err() == nil
}

func (l *majority) Fence() int64             { return l.fence }
func (l *majority) Deadline() time.Time      { return l.deadline }
func (l *majority) Context() context.Context { return l.ctx }

func (l *majority) Err() error {
	if !time.Now().Before(l.deadline) {
		return zamok.ErrLost
	}
	return nil
}

// Extend does nothing.
func (l *majority) Extend(context.Context, time.Duration) error { return l.Err() }

// Write is not for a quorum.
func (l *majority) Write(context.Context, string, int64) error { return zamok.ErrReleased }

// Release implements traffic.Lease.
func (l *majority) Release(context.Context) error {
	l.end()
	return l.free()
}

// free gives back what any node granted.
func (l *majority) free() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.ttl)
	defer cancel()
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, free.Run(ctx, n, []string{l.keys[0], "queue"}, l.token, "").Err())
	}
	return errors.Join(errs...)
}
