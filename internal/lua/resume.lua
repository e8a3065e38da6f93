-- Passes a held lock from one token to another: a process goes on with a lease that it was handed.
-- KEYS: lock, queue (not touched), fence, readers (not touched), node (only with quarantine)
-- ARGV: old token, new token, ttl in ms, terms (only with quarantine)
-- RETURNS: granted | broken | absent | other | held (in quarantine), fence, pttl, time, 0, 0, holder
-- KEEPS: the lock is never free in between; whoever still has the old token holds nothing from then on and
-- KEEPS: its fence is smaller; no TTL is shortened; a second run with the same two tokens changes nothing; what
-- KEEPS: an operator broke ("!" in the value) is not passed on.
local old, new, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local v = redis.call('GETEX', KEYS[1])
if not v then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
local pttl = redis.call('PTTL', KEYS[1])
local again = string.sub(v, 1, #new + 1) == new .. ':'
if not again and string.sub(v, 1, #old + 1) ~= old .. ':' then
  return {'other', '0', pttl, 0, 0, 0, v}
end
if string.find(v, '!', #(again and new or old) + 1, true) then
  return {'broken', '0', pttl, 0, 0, 0, v}
end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
pttl = math.max(pttl, ttl)
if again then
  redis.call('PEXPIRE', KEYS[1], pttl)
  return {'granted', string.match(v, ':(%d+)', #new + 1), pttl, now, 0, 0, ''}
end
local node, terms = KEYS[5], ARGV[4]
-- INCLUDE: node
if odds then
  return odds
end
if closed > 0 then
  return {'held', '0', closed, now, 0, 0, 'z1-quarantine'}
end
-- INCLUDE: fence
redis.call('SET', KEYS[1], new .. ':' .. fence, 'PX', pttl)
return {'granted', fence, pttl, now, 0, 0, ''}
