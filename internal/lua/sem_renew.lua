-- Asks whether the token still has a permit and raises what is left of it to at least ttl.
-- KEYS: semaphore
-- ARGV: token, ttl in ms (0: only ask)
-- RETURNS: renewed | absent, 0, pttl, 0, 0, 0, ''
-- KEEPS: only the token's own permit is renewed; one that is gone is not made anew; no end comes earlier.
local token, ttl = ARGV[1], tonumber(ARGV[2])
local t = redis.call('TIME')
local ms = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))
local ends = redis.call('ZSCORE', KEYS[1], token)
if not ends then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
ends = tonumber(ends)
if ttl > 0 and ends < ms + ttl then
  ends = ms + ttl
  redis.call('ZADD', KEYS[1], string.format('%.0f', ends), token)
  if redis.call('PTTL', KEYS[1]) < ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
end
return {'renewed', '0', ends - ms, 0, 0, 0, ''}
