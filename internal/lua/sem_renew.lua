-- Asks whether the token still has a permit and raises what is left of it to at least ttl.
-- KEYS: semaphore, semaphore again, marks
-- ARGV: token, ttl in ms (0: only ask)
-- RETURNS: renewed | broken | absent, 0, pttl, 0, 0, 0, value
-- KEEPS: only the token's own permit is renewed; one that is gone is not made anew; no end comes earlier; what an operator
-- KEEPS: marked is still the holder's, and is not raised.
local token, ttl = ARGV[1], tonumber(ARGV[2])
local t = redis.call('TIME')
local ms = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))
-- INCLUDE: member
