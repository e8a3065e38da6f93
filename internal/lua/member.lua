-- FRAGMENT: takes token, ttl and ms; KEYS are a semaphore or lock, its members and marks; answers whether the token is one of
-- the members, and raises what is left to at least ttl.
-- KEEPS: one that is gone is not made anew; no end comes earlier; both keys last as long as each member; what an operator
-- KEEPS: marked is not raised.
local ends = tonumber(redis.call('ZSCORE', KEYS[2], token) or '')
if not ends or ends <= ms then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
local note = redis.call('HGET', KEYS[3], token)
if note then
  return {'broken', '0', ends - ms, 0, 0, 0, token .. ':0!' .. note}
end
if ttl > 0 and ends < ms + ttl then
  ends = ms + ttl
  redis.call('ZADD', KEYS[2], string.format('%.0f', ends), token)
  local last = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last))
  if redis.call('PTTL', KEYS[1]) < last - ms then
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
  end
end
return {'renewed', '0', ends - ms, 0, 0, 0, ''}
