-- Asks one who has a permit, or reads, to stop, for an operator.
-- KEYS: semaphore or readers, marks
-- ARGV: token, note, inbox of the holder (empty: none), key of the semaphore or lock
-- RETURNS: asked | absent, 0, pttl, 0, 0, 0, value
-- KEEPS: only the token that the operator saw; who is asked keeps what it has until it releases it or its lease ends, which
-- KEEPS: no renewal raises any more; a second asking changes nothing; the mark lasts longer than any lease (24 h) by
-- KEEPS: 60 s, so that also one that is taken away is told why.
local token = ARGV[1]
local t = redis.call('TIME')
local ms = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))
local ends = tonumber(redis.call('ZSCORE', KEYS[1], token) or '')
local note = redis.call('HGET', KEYS[2], token)
if not ends then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
if not note then
  note = ARGV[2]
  redis.call('HSET', KEYS[2], token, note)
end
redis.call('PEXPIRE', KEYS[2], 86460000)
if ARGV[3] ~= '' then
  redis.pcall('PUBLISH', ARGV[3], table.concat({'break', token, ARGV[4]}, ' '))
end
return {'asked', '0', ends - ms, 0, 0, 0, token .. ':0!' .. note}
