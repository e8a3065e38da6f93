-- Sets how many permits a semaphore has, for all who use it, or reads that.
-- KEYS: semaphore, queue, fence, limit, node (only with quarantine)
-- ARGV: permits (0: what each caller says counts again; empty: only read), terms (only with quarantine)
-- RETURNS: set, 0, 0, time, 0, 0, '', permits (0: not set), taken
-- KEEPS: nobody loses a permit; those that are new go to the first waiters, in quarantine to nobody.
local own = string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$') or '0'
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', math.floor(now / 1000)))
local node, terms = KEYS[5], ARGV[2]
-- INCLUDE: node
redis.call('ZCARD', KEYS[2])
local taken = redis.call('ZCARD', KEYS[1])
if ARGV[1] == '0' then
  redis.call('DEL', KEYS[4])
  own = '0'
elseif ARGV[1] ~= '' then
  redis.call('SET', KEYS[4], ARGV[1])
  own = ARGV[1]
end
-- INCLUDE: permits
local _, given = grant(now, nil, 0, tonumber(own) - taken)
if given > 0 then
  tell(now)
end
return {'set', '0', 0, now, 0, 0, '', tonumber(own), taken + given}
