-- Gives up whatever the token has: the lock, which goes to the next waiter, or a place in the queue.
-- KEYS: lock, queue, fence
-- ARGV: token, member (its entry in the queue; empty: it has none), rest in ms (0: none)
-- RETURNS: released | handed | absent | other, fence, pttl, 0, removed from the queue, 0, holder
-- KEEPS: only the holder's token ends the lock; a lock that is free is never left to a queue; with rest the
-- KEEPS: key stays, owned by nobody, that long; a second run changes nothing for others.
local token = ARGV[1]
local v = redis.call('GETEX', KEYS[1])
local mine = v and string.sub(v, 1, #token + 1) == token .. ':'
if mine then
  local fence = string.match(v, ':(%d+)', #token + 1)
  if ARGV[3] ~= '0' then
    redis.call('SET', KEYS[1], 'z1-rest' .. string.sub(token, 3) .. ':' .. fence, 'PX', ARGV[3])
    return {'released', fence, tonumber(ARGV[3]), 0, 0, 0, ''}
  end
  if redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('DEL', KEYS[1])
    return {'released', fence, 0, 0, 0, 0, ''}
  end
end
local removed = 0
if ARGV[2] ~= '' and not mine then
  removed = redis.call('ZREM', KEYS[2], ARGV[2])
end
if v and not mine then
  return {'other', '0', redis.call('PTTL', KEYS[1]), 0, removed, 0, v}
end
if not mine and redis.call('EXISTS', KEYS[2]) == 0 then
  return {'absent', '0', -2, 0, removed, 0, ''}
end
redis.call('GET', KEYS[3]) -- fails here, before anybody is taken out of the queue, when it is of another type
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
-- INCLUDE: handover
local who, value = hand_over(now, nil)
if not mine then
  return {'absent', '0', -2, 0, removed, 0, value or ''}
end
if who == 'other' then
  return {'handed', string.match(v, ':(%d+)', #token + 1), 0, 0, 0, 0, value}
end
redis.call('DEL', KEYS[1])
return {'released', string.match(v, ':(%d+)', #token + 1), 0, 0, 0, 0, ''}
