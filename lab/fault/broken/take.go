package broken

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/traffic"
)

// acquire takes a lock for the first in the queue, of those who asked within the last
// seconds, if nobody reads.
//
//	KEYS: lock, queue, seen, fence, readers
//	ARGV: token, TTL in ms, 1 to wait, the flaw
//	RETURNS: the fence, or nothing
var acquire = redis.NewScript(`
local t, flaw = redis.call('TIME'), ARGV[4]
local us = t[1] * 1000000 + t[2]
local function leave(who)
  redis.call('ZREM', KEYS[2], who)
  redis.call('HDEL', KEYS[3], who)
end
local mine = redis.call('GET', KEYS[1]) == ARGV[1] and flaw ~= 'acquire not idempotent'
if not mine then
  if ARGV[3] == '1' then
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
    redis.call('ZADD', KEYS[2], 'NX', last + 1, ARGV[1])
    redis.call('HSET', KEYS[3], ARGV[1], string.format('%d', us))
    redis.call('PEXPIRE', KEYS[2], 60000)
    redis.call('PEXPIRE', KEYS[3], 60000)
  end
  local order = flaw == 'last come, first served' and 'ZREVRANGE' or 'ZRANGE'
  local head = redis.call(order, KEYS[2], 0, 0)[1]
  while head and us - redis.call('HGET', KEYS[3], head) > 5000000 and flaw ~= 'a waiter that gave up stays in the queue' do
    leave(head)
    head = redis.call(order, KEYS[2], 0, 0)[1]
  end
  if head and head ~= ARGV[1] or redis.call('EXISTS', KEYS[1]) == 1 then
    return false
  end
  local ms = string.format('%d', us / 1000)
  if redis.call('ZCOUNT', KEYS[5], ms, '+inf') > 0 and flaw ~= 'a writer that does not look at readers' then
    return false
  end
end
if flaw == 'SET NX and a separate EXPIRE' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
leave(ARGV[1])
if flaw == 'INCR for a fence' then
  return redis.call('INCR', KEYS[4])
end
local fence = math.max(us, (redis.call('GET', KEYS[4]) or 0) + 1)
redis.call('SET', KEYS[4], string.format('%d', fence))
return fence
`)

// permit takes a permit if there is one, or reads if nobody writes.
//
//	KEYS: semaphore or readers, fence, lock
//	ARGV: token, TTL in ms, permits, the client's clock in ms or nothing, the flaw
//	RETURNS: the fence, or nothing
var permit = redis.NewScript(`
local t = redis.call('TIME')
local us = t[1] * 1000000 + t[2]
local now = tonumber(ARGV[4]) or math.floor(us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local permits = ARGV[3] + (ARGV[5] == 'semaphore of one permit too many' and 1 or 0)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= permits then
  return false
end
if redis.call('EXISTS', KEYS[3]) == 1 and ARGV[5] ~= 'a reader that does not look at the writer' then
  return false
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
local fence = math.max(us, (redis.call('GET', KEYS[2]) or 0) + 1)
redis.call('SET', KEYS[2], string.format('%d', fence))
return fence
`)

// try is one call of Take.
type try struct {
	*Engine
	want  traffic.Want
	token string
}

// shares reports whether others may hold it too.
func (t *try) shares() bool { return t.want.Kind == history.Permit || t.want.Kind == history.Reader }

// lock is the key of what is wanted.
func (t *try) lock() string {
	if t.shares() {
		return t.shared()
	}
	return t.own()
}

func (t *try) own() string    { return "lock:" + t.want.Name }
func (t *try) shared() string { return "semaphore:" + t.want.Name }
func (t *try) queue() string  { return "queue:" + t.want.Name }

// ask asks once. The lease is counted from before the request.
func (t *try) ask(ctx context.Context) (*lease, error) {
	began := time.Now()
	fence, err := t.send(ctx)
	if errors.Is(err, redis.Nil) {
		return nil, zamok.ErrHeld
	}
	if err == nil && t.flaw == EndsLater {
		err = t.rdb.PExpire(ctx, t.lock(), t.ttl).Err()
	}
	if err != nil {
		return nil, err
	}
	if t.flaw == CountsFromReply {
		began = time.Now()
	}
	l := newLease(t, fence, began.Add(t.ttl-margin))
	if t.flaw != GivesUp && l.Err() != nil {
		return nil, l.Err()
	}
	return l, nil
}

func (t *try) send(ctx context.Context) (int64, error) {
	const counter = "zamok:fence:{broken}"
	if t.shares() {
		now, limit := "", t.want.Limit
		if t.flaw == ClientClocks {
			now = milliseconds(time.Now().Add(t.skew))
		}
		if t.want.Kind == history.Reader {
			limit = math.MaxInt32
		}
		return permit.Run(ctx, t.rdb, []string{t.shared(), counter, t.own()}, t.token, t.ttl.Milliseconds(), limit, now, string(t.flaw)).Int64()
	}
	wait := t.want.Wait && t.flaw != HearsOnly
	keys := []string{t.own(), t.queue(), "seen:" + t.want.Name, counter, t.shared()}
	return acquire.Run(ctx, t.rdb, keys, t.token, t.ttl.Milliseconds(), wait, string(t.flaw)).Int64()
}

// leave gives up the place in the queue, and what was granted all the same, which two of
// the flaws do not know of.
func (t *try) leave() {
	undo := func(ctx context.Context) error {
		_, err := t.giveBack(ctx)
		return err
	}
	switch t.flaw {
	case KeepsPlaces:
		return
	case EndsLater, ForgetsItself:
		undo = func(ctx context.Context) error { return t.rdb.ZRem(ctx, t.queue(), t.token).Err() }
	}
	t.behind.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), t.ttl)
		defer cancel()
		for undo(ctx) != nil && ctx.Err() == nil {
			time.Sleep(poll)
		}
	})
}
