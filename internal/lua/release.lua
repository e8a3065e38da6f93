-- Gives up whatever the token has: the lock, which goes to the next waiter, a reader's share of it, or a place in the queue.
-- KEYS: lock, queue, fence, readers, node (only with quarantine)
-- ARGV: token, member (its entry in the queue; empty: it has none), rest in ms (0: none; a reader has none), terms (only with quarantine)
-- RETURNS: released | handed | absent | other, fence (of a reader 0), pttl, 0, removed from the queue, 0, holder
-- KEEPS: only the holder's token ends the lock, and only the last reader's that of readers; a lock that is free is not left
-- KEEPS: to a queue (but to one that begins with 1,000 dead, whose next poll goes on), nor readers to a writer who gave
-- KEEPS: up; with rest the key stays, owned by nobody, that long, unless an operator broke the lease; whoever comes
-- KEEPS: first by this is told; in quarantine nobody is granted what is freed, and the first is told for how long; a second run changes nothing for others.
local token, rest = ARGV[1], ARGV[3]
local v = redis.call('GETEX', KEYS[1])
local mine = v and string.sub(v, 1, #token + 1) == token .. ':'
local reads = v and not mine and string.sub(v, 1, 8) == 'z1-read:'
local fence = mine and string.match(v, ':(%d+)', #token + 1) or '0'
if mine and rest ~= '0' and string.find(v, '!', #token + 1, true) then
  rest = '0'
end
local t, node, terms = nil, KEYS[5], ARGV[4]
-- INCLUDE: node
if reads and redis.call('ZREM', KEYS[4], token) == 1 then
  local last = tonumber(redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2] or 0)
  t = t or last > 0 and redis.call('TIME')
  if t and last > t[1] * 1000 + math.floor(t[2] / 1000) then
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
    redis.call('PEXPIREAT', KEYS[4], string.format('%.0f', last))
    return {'released', '0', 0, 0, 0, 0, ''}
  end
  mine, rest = true, '0'
end
local head
if mine and rest == '0' and closed == 0 then
  head = redis.call('ZPOPMIN', KEYS[2])[1]
  if not head then
    redis.call('DEL', KEYS[1])
    return {'released', fence, 0, 0, 0, 0, ''}
  end
end
-- INCLUDE: handover
if mine and rest ~= '0' then
  redis.call('SET', KEYS[1], 'z1-rest' .. string.sub(token, 3) .. ':' .. fence, 'PX', rest)
  tell_next(rest)
  return {'released', fence, tonumber(rest), 0, 0, 0, ''}
end
t = t or redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local removed = 0
if ARGV[2] ~= '' and not mine then
  local rank = redis.call('ZRANK', KEYS[2], ARGV[2])
  removed = redis.call('ZREM', KEYS[2], ARGV[2])
  if v and rank == 0 then
    if not reads or not select(2, admit(now)) then
      tell_next(redis.call('PTTL', KEYS[1]))
    end
  end
end
if v and not mine then
  return {'other', '0', redis.call('PTTL', KEYS[1]), 0, removed, 0, v}
end
if not mine and redis.call('EXISTS', KEYS[2]) == 0 then
  return {'absent', '0', -2, 0, removed, 0, ''}
end
local who, value = hand_over(now, nil, head)
if who == 'closed' then
  value = nil
end
if not mine then
  return {'absent', '0', -2, 0, removed, 0, value or ''}
end
if who == 'other' then
  return {'handed', fence, 0, 0, 0, 0, value}
end
redis.call('DEL', KEYS[1])
return {'released', fence, 0, 0, 0, 0, ''}
