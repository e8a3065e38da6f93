-- Runs the caller's own script, if the token still has a permit, in one atomic step.
-- KEYS: semaphore, call, then the caller's
-- ARGV: token, fence of the permit, then the caller's
-- RETURNS: ran | absent | repeated, fence, pttl, 0, 0, 0, '', what the caller's script returned
-- KEEPS: the script runs only under the permit, and once a call however often the call is sent: the call's own
-- KEEPS: key, kept for a minute, refuses a second run.
local t = redis.call('TIME')
local ms = t[1] * 1000 + math.floor(t[2] / 1000)
local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if ends <= ms then
  redis.call('GETEX', KEYS[2])
  return {'absent', '0', -2, 0, 0, 0, ''}
end
if not redis.call('SET', KEYS[2], '1', 'NX', 'PX', 60000) then
  return {'repeated', '0', 0, 0, 0, 0, ''}
end
local fence = ARGV[2]
local left = ends - ms
local function body(KEYS, ARGV, FENCE)
-- BODY
end
return {'ran', fence, left, 0, 0, 0, '', body({unpack(KEYS, 3)}, {unpack(ARGV, 3)}, fence)}
