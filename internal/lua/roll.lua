-- Reads those who have a permit, or read, and the first of those who wait.
-- KEYS: semaphore or readers, queue, fence, limit, marks
-- ARGV: how many holders at most, how many waiters
-- RETURNS: limit (0: not set), fence, pttl, time, waiters in all, holders in all, holders that follow, then token, end in ms, value with its mark (empty: none) of each, then member, ticket, ears of each waiter
-- KEEPS: nothing is changed; a replica refuses to answer.
local most = ARGV[2]
local limit = string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$')
local last = redis.call('GET', KEYS[3])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local after = string.format('(%.0f', math.floor(now / 1000))
local held = redis.call('ZRANGE', KEYS[1], after, '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
local out = {limit or '0', last or '0', redis.call('PTTL', KEYS[1]), now, redis.call('ZCARD', KEYS[2]),
  redis.call('ZCOUNT', KEYS[1], after, '+inf'), #held / 2}
for i = 1, #held, 2 do
  local note = redis.call('HGET', KEYS[5], held[i])
  out[#out + 1] = held[i]
  out[#out + 1] = tonumber(held[i + 1])
  out[#out + 1] = note and held[i] .. ':0!' .. note or ''
end
-- INCLUDE: waiters
return out
