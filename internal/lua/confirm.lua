-- Writes the fence of a lease back to one member of a quorum that voted for it, and takes its owner out of the queue there.
-- KEYS: lock, queue, fence
-- ARGV: token, fence, the last fence that is reserved with it, member (its entry in the queue; empty: it has none)
-- RETURNS: confirmed | absent | other, fence, pttl, 0, removed from the queue, 0, holder
-- KEEPS: only where the token still has the lock is anything written but the queue: a fence written back elsewhere orders
-- KEEPS: nothing; the counter is never set back, the TTL and an operator's mark stay; a second run changes nothing; whoever
-- KEEPS: is the first in the queue instead is told.
local token = ARGV[1]
local v = redis.call('GETEX', KEYS[1])
local last = redis.call('GET', KEYS[3])
local pttl = redis.call('PTTL', KEYS[1])
local removed = 0
if ARGV[4] ~= '' then
  removed = redis.call('ZREM', KEYS[2], ARGV[4])
end
local status, fence = 'absent', '0'
if v and string.sub(v, 1, #token + 1) == token .. ':' then
  last = last and tonumber(string.match(last, '^%d+$'))
  if not last or last < tonumber(ARGV[3]) or last >= 9007199254740991 then
    redis.call('SET', KEYS[3], ARGV[3])
  end
  redis.call('SET', KEYS[1], token .. ':' .. ARGV[2] .. (string.match(v, '!.*$', #token + 1) or ''), 'KEEPTTL')
  status, fence, v = 'confirmed', ARGV[2], nil
elseif v then
  status = 'other'
end
if removed > 0 then
  -- INCLUDE: head
  tell_next(math.max(pttl, 1))
end
return {status, fence, pttl, 0, removed, 0, v or ''}
