-- Runs the caller's own script, if the token still holds the lock, or reads under it, in one atomic step.
-- KEYS: lock, call, readers, then the caller's
-- ARGV: token, fence of the lease, then the caller's
-- RETURNS: ran | absent | other | repeated, fence, pttl, 0, 0, 0, holder, what the caller's script returned
-- KEEPS: the script runs only under the lock, and once a call however often the call is sent: the call's own
-- KEEPS: key, kept for a minute, refuses a second run.
local token = ARGV[1]
-- GET, and GETEX only to have a replica refuse what it cannot know: once GETEX has run, a full memory would not
-- refuse the caller's writes. For a holder the SET below does both.
local v = redis.call('GET', KEYS[1])
local left
if v and string.sub(v, 1, #token + 1) == token .. ':' then
  left = redis.call('PTTL', KEYS[1])
elseif v and string.sub(v, 1, 8) == 'z1-read:' then
  local t = redis.call('TIME')
  left = tonumber(redis.call('ZSCORE', KEYS[3], token) or 0) - t[1] * 1000 - math.floor(t[2] / 1000)
  left = left > 0 and left or nil
end
if not left then
  v = redis.call('GETEX', KEYS[1])
  if not v then
    return {'absent', '0', -2, 0, 0, 0, ''}
  end
  return {'other', '0', redis.call('PTTL', KEYS[1]), 0, 0, 0, v}
end
if not redis.call('SET', KEYS[2], '1', 'NX', 'PX', 60000) then
  return {'repeated', '0', 0, 0, 0, 0, ''}
end
local fence = ARGV[2]
local function body(KEYS, ARGV, FENCE)
-- BODY
end
return {'ran', fence, left, 0, 0, 0, '', body({unpack(KEYS, 4)}, {unpack(ARGV, 3)}, fence)}
