-- FRAGMENT: takes token, ttl and ms; KEYS are a semaphore or lock, its members and marks; answers whether the token is one of
-- the members, and raises what is left to at least ttl.
-- KEEPS: one that is gone is not made anew; no end comes earlier; KEYS[1] lasts as long as each member; what an operator
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
  if redis.call('PTTL', KEYS[1]) < ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
    if KEYS[2] ~= KEYS[1] then
      redis.call('PEXPIRE', KEYS[2], ttl)
    end
  end
end
return {'renewed', '0', ends - ms, 0, 0, 0, ''}
