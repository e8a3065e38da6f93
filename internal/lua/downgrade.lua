-- Turns the holder of a lock into a reader of it, and lets in the readers who wait behind it.
-- KEYS: lock, queue, fence, readers, node (only with quarantine)
-- ARGV: token, ttl in ms, terms (only with quarantine)
-- RETURNS: granted | broken | absent | other, fence, pttl, time, 0, 0, holder
-- KEEPS: the lock is never free in between; only the holder's token; no TTL is shortened; no reader passes a writer who
-- KEEPS: waits, and none is let in in quarantine; what an operator broke ("!" in the value) stays as it is; a second run changes nothing.
local token, ttl = ARGV[1], tonumber(ARGV[2])
local v = redis.call('GETEX', KEYS[1])
if not v then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
local pttl = redis.call('PTTL', KEYS[1])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local ms = math.floor(now / 1000)
if string.sub(v, 1, #token + 1) ~= token .. ':' then
  local mine = string.sub(v, 1, 8) == 'z1-read:' and tonumber(redis.call('ZSCORE', KEYS[4], token) or '')
  if mine and mine > ms then
    return {'granted', '0', mine - ms, now, 0, 0, ''}
  end
  return {'other', '0', pttl, now, 0, 0, v}
end
if string.find(v, '!', #token + 1, true) then
  return {'broken', '0', pttl, now, 0, 0, v}
end
local node, terms = KEYS[5], ARGV[3]
-- INCLUDE: node
-- INCLUDE: readers
local fence = string.match(v, ':(%d+)', #token + 1) or '0'
pttl = math.max(pttl, ttl)
redis.call('ZCARD', KEYS[2])
redis.call('DEL', KEYS[4])
redis.call('ZADD', KEYS[4], string.format('%.0f', ms + pttl), token)
redis.call('PEXPIRE', KEYS[4], pttl)
redis.call('SET', KEYS[1], 'z1-read:' .. fence, 'PX', pttl)
admit(now)
return {'granted', fence, pttl, now, 0, 0, ''}
