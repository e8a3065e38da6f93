-- Asks whether the token still holds the lock, or reads under it, and raises what is left to at least ttl.
-- KEYS: lock, readers (only of a reader), marks (only of a reader)
-- ARGV: token, ttl in ms (0: only ask)
-- RETURNS: renewed | broken | absent | other, fence (of a reader 0), pttl, 0, 0, 0, value
-- KEEPS: only the holder's token is renewed; a lock that is gone is not made anew; no TTL is shortened, and the lock lasts
-- KEEPS: as long as each of its readers; what an operator broke ("!" in the value, or a mark) is still the holder's,
-- KEEPS: and is not raised.
local token, ttl = ARGV[1], tonumber(ARGV[2])
local v = redis.call('GETEX', KEYS[1])
if not v then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
local pttl = redis.call('PTTL', KEYS[1])
if string.sub(v, 1, #token + 1) == token .. ':' then
  if string.find(v, '!', #token + 1, true) then
    return {'broken', string.match(v, ':(%d+)', #token + 1), pttl, 0, 0, 0, v}
  end
  if ttl > 0 and pttl < ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
    pttl = ttl
  end
  return {'renewed', string.match(v, ':(%d+)', #token + 1), pttl, 0, 0, 0, v}
end
if not KEYS[2] or string.sub(v, 1, 8) ~= 'z1-read:' then
  return {'other', '0', pttl, 0, 0, 0, v}
end
local t = redis.call('TIME')
local ms = t[1] * 1000 + math.floor(t[2] / 1000)
-- INCLUDE: member
