package broken

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
)

// margin is by how much a holder stops earlier than the server lets go.
const margin = 10 * time.Millisecond

// lease implements traffic.Lease.
type lease struct {
	*try
	fence int64
	ctx   context.Context
	end   context.CancelFunc
	timer *time.Timer

	mu       sync.Mutex
	deadline time.Time
	over     bool
}

func newLease(t *try, fence int64, deadline time.Time) *lease {
	l := &lease{try: t, fence: fence, deadline: deadline}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.timer = time.AfterFunc(time.Until(deadline), l.end)
	return l
}

func (l *lease) Fence() int64             { return l.fence }
func (l *lease) Context() context.Context { return l.ctx }

func (l *lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

func (l *lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return zamok.ErrReleased
	case !time.Now().Before(l.deadline), l.flaw == GivesUp && l.some():
		return zamok.ErrLost
	}
	return nil
}

// some reports whether the lease is one of those that a flaw shows in.
func (l *lease) some() bool { return l.fence%4 == 0 }

// raise raises the TTL of a lock that is still the token's.
var raise = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

// Extend does nothing for what others may hold too.
func (l *lease) Extend(ctx context.Context, d time.Duration) error {
	if err := l.Err(); err != nil || l.shares() {
		return err
	}
	began := time.Now()
	held, err := raise.Run(ctx, l.rdb, []string{l.lock()}, l.token, d.Milliseconds()).Int()
	switch {
	case err != nil && l.flaw == ExtendsBlindly:
	case err != nil:
		return err
	case held == 0:
		return zamok.ErrLost
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = began.Add(d - margin)
	l.timer.Reset(time.Until(l.deadline))
	return nil
}

// Release gives the lock back.
func (l *lease) Release(ctx context.Context) error {
	l.mu.Lock()
	over := l.over
	l.over = true
	l.mu.Unlock()
	l.timer.Stop()
	if l.flaw != KeepsContexts || !l.some() {
		l.end()
	}
	if over {
		return zamok.ErrReleased
	}
	had, err := l.giveBack(ctx)
	if err == nil && had == 0 {
		return zamok.ErrLost
	}
	return err
}

// free takes a lock or permit away from its token, and the token from the queue.
//
//	KEYS: lock or semaphore, queue
//	ARGV: token, the flaw
var free = redis.NewScript(`
redis.call('ZREM', KEYS[2], ARGV[1])
if string.sub(KEYS[1], 1, 5) ~= 'lock:' then
  return redis.call('ZREM', KEYS[1], ARGV[1])
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] and ARGV[2] ~= 'release without a look at the owner' then
  return 0
end
return redis.call('DEL', KEYS[1])
`)

func (t *try) giveBack(ctx context.Context) (had int, err error) {
	had, err = free.Run(ctx, t.rdb, []string{t.lock(), t.queue()}, t.token, string(t.flaw)).Int()
	if err == nil {
		err = t.rdb.Publish(ctx, channel(t.want.Name), "").Err()
	}
	return had, err
}

// guarded writes if the lock is the token's.
var guarded = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[2], ARGV[2])
return 1
`)

// Write implements traffic.Lease.
func (l *lease) Write(ctx context.Context, key string, value int64) error {
	if err := l.Err(); err != nil {
		return err
	}
	text := fmt.Sprint(value, l.fence, 1)
	if l.flaw == WritesBlind {
		return unknown(l.rdb.Set(ctx, key, text, 0).Err())
	}
	done, err := guarded.Run(ctx, l.rdb, []string{l.lock(), key}, l.token, text).Int()
	if err == nil && done == 0 {
		return zamok.ErrLost
	}
	return unknown(err)
}

// unknown is an error after which the write may have been done, or may yet be.
func unknown(err error) error {
	if err == nil {
		return nil
	}
	return zamok.ErrUnknown
}

func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
