-- Takes a permit of a semaphore when one is free, or joins the queue of those who wait for one.
-- KEYS: semaphore, queue, fence, limit, node (only with quarantine)
-- ARGV: token, ttl in ms, inbox (empty: do not wait; "-": wait and poll), ticket (0: none yet), mode, permits (unless limit says how many), terms (only with quarantine)
-- RETURNS: granted | waits | held | again, fence (waits: 1 if it stood in the queue already), pttl, time, position (granted: as of acquire), ears (granted: ms since it was handed over), token whose permit ends first, ticket, permits, taken
-- KEEPS: at most so many permits are held, and no new one in quarantine; each ends by itself, by the server's clock; no end comes earlier;
-- KEEPS: whoever waits is granted in the order of tickets and nobody before the first who still listens; a second
-- KEEPS: run with one token takes no second permit.
local token, ttl, inbox = ARGV[1], tonumber(ARGV[2]), ARGV[3]
-- GETEX without an option is a GET that a replica refuses.
local limit = tonumber(string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$') or ARGV[6])
local tail = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local ms = math.floor(now / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))
local taken = redis.call('ZCARD', KEYS[1])
local node, terms = KEYS[5], ARGV[7]
-- INCLUDE: node
if odds then
  return odds
end
local mine = redis.call('ZSCORE', KEYS[1], token)
if mine or taken < limit and not tail[1] and closed == 0 then
  -- INCLUDE: fence
  local ends = math.max(tonumber(mine or 0), ms + ttl)
  redis.call('ZADD', KEYS[1], string.format('%.0f', ends), token)
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]))
  local age = mine and math.max(0, ms - mine + math.min(ttl, 2000)) or 0
  return {'granted', fence, ends - ms, now, mine and 2 or 0, age, '', '0', limit, mine and taken or taken + 1}
end
-- INCLUDE: permits
-- INCLUDE: enqueue
local got, given, why = grant(now, token, ttl, limit - taken)
taken = taken + given
if not got and why == 'nobody' then
  -- INCLUDE: fence
  redis.call('ZADD', KEYS[1], string.format('%.0f', ms + ttl), token)
  keep()
  got, taken = fence, taken + 1
end
if given > 0 or got then
  tell(now)
end
if got then
  return {'granted', got, ttl, now, stood, 0, '', '0', limit, taken}
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local left = first[2] and tonumber(first[2]) - ms or 0
if closed > 0 and taken < limit then
  first[1], left = 'z1-quarantine', closed
end
if why == 'more' then
  return {'again', '0', 0, now, 0, 0, '', string.format('%.0f', ticket), limit, taken}
end
if inbox == '' then
  return {'held', '0', left, now, 0, 0, first[1] or '', '0', limit, taken}
end
local rank = redis.call('ZRANK', KEYS[2], me)
return {'waits', stood > 0 and '1' or '0', left, now, rank + 1, ears, first[1] or '', string.format('%.0f', ticket), limit, taken}
