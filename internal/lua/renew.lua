-- Asks whether the token still holds the lock and raises what is left to at least ttl.
-- KEYS: lock
-- ARGV: token, ttl in ms (0: only ask)
-- RETURNS: renewed | broken | absent | other, fence, pttl, 0, 0, 0, value
-- KEEPS: only the holder's token is renewed; a lock that is gone is not made anew; no TTL is shortened; what an
-- KEEPS: operator broke ("!" in the value) is still the holder's, and is not raised.
local token, ttl = ARGV[1], tonumber(ARGV[2])
local v = redis.call('GETEX', KEYS[1])
if not v then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
local pttl = redis.call('PTTL', KEYS[1])
if string.sub(v, 1, #token + 1) ~= token .. ':' then
  return {'other', '0', pttl, 0, 0, 0, v}
end
if string.find(v, '!', #token + 1, true) then
  return {'broken', string.match(v, ':(%d+)', #token + 1), pttl, 0, 0, 0, v}
end
if ttl > 0 and pttl < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
  pttl = ttl
end
return {'renewed', string.match(v, ':(%d+)', #token + 1), pttl, 0, 0, 0, v}
