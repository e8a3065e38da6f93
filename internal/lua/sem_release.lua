-- Gives up whatever the token has: a permit, which goes to the next waiter, or a place in the queue.
-- KEYS: semaphore, queue, fence, limit, node (only with quarantine)
-- ARGV: token, member (its entry in the queue; empty: it has none), permits (unless limit says how many), terms (only with quarantine)
-- RETURNS: released | handed | absent, fence, pttl, 0, removed from the queue, 0, ''
-- KEEPS: only the token's own permit ends; in quarantine nobody is given it; a permit that is free is not left to a queue (but to one that begins
-- KEEPS: with 1,000 dead, whose next poll goes on); a second run changes nothing for others.
local limit = tonumber(string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$') or ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', math.floor(now / 1000)))
local node, terms = KEYS[5], ARGV[4]
-- INCLUDE: node
local waiters = redis.call('ZCARD', KEYS[2])
local status = redis.call('ZREM', KEYS[1], ARGV[1]) == 1 and 'released' or 'absent'
if waiters == 0 then
  return {status, '0', 0, 0, 0, 0, ''}
end
-- INCLUDE: permits
local removed = 0
if ARGV[2] ~= '' then
  removed = redis.call('ZREM', KEYS[2], ARGV[2])
end
local _, given = grant(now, nil, 0, limit - redis.call('ZCARD', KEYS[1]))
if given > 0 or removed > 0 then
  tell(now)
end
if given > 0 and status == 'released' then
  status = 'handed'
end
return {status, '0', 0, 0, removed, 0, ''}
