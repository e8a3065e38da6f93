-- Gives up whatever the token has: the lock, which goes to the next waiter, or a place in the queue.
-- KEYS: lock, queue, fence
-- ARGV: token, member (its entry in the queue; empty: it has none), rest in ms (0: none)
-- RETURNS: released | handed | absent | other, fence, pttl, 0, removed from the queue, 0, holder
-- KEEPS: only the holder's token ends the lock; a lock that is free is not left to a queue (but to one that
-- KEEPS: begins with 1,000 dead, whose next poll goes on); with rest the
-- KEEPS: key stays, owned by nobody, that long, unless an operator broke the lease; whoever comes first by this is told; a second run changes
-- KEEPS: nothing for others.
local token = ARGV[1]
local v = redis.call('GETEX', KEYS[1])
local mine = v and string.sub(v, 1, #token + 1) == token .. ':'
local rest = ARGV[3]
if mine and rest ~= '0' and string.find(v, '!', #token + 1, true) then
  rest = '0'
end
local head
if mine and rest == '0' then
  head = redis.call('ZPOPMIN', KEYS[2])[1]
  if not head then
    redis.call('DEL', KEYS[1])
    return {'released', string.match(v, ':(%d+)', #token + 1), 0, 0, 0, 0, ''}
  end
end
-- INCLUDE: handover
if mine and rest ~= '0' then
  local fence = string.match(v, ':(%d+)', #token + 1)
  redis.call('SET', KEYS[1], 'z1-rest' .. string.sub(token, 3) .. ':' .. fence, 'PX', rest)
  tell_next(rest)
  return {'released', fence, tonumber(rest), 0, 0, 0, ''}
end
local removed = 0
if ARGV[2] ~= '' and not mine then
  local rank = redis.call('ZRANK', KEYS[2], ARGV[2])
  removed = redis.call('ZREM', KEYS[2], ARGV[2])
  if v and rank == 0 then
    tell_next(redis.call('PTTL', KEYS[1]))
  end
end
if v and not mine then
  return {'other', '0', redis.call('PTTL', KEYS[1]), 0, removed, 0, v}
end
if not mine and redis.call('EXISTS', KEYS[2]) == 0 then
  return {'absent', '0', -2, 0, removed, 0, ''}
end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local who, value = hand_over(now, nil, head)
if not mine then
  return {'absent', '0', -2, 0, removed, 0, value or ''}
end
if who == 'other' then
  return {'handed', string.match(v, ':(%d+)', #token + 1), 0, 0, 0, 0, value}
end
redis.call('DEL', KEYS[1])
return {'released', string.match(v, ':(%d+)', #token + 1), 0, 0, 0, 0, ''}
