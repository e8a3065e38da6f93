-- Reads a lock, its last fence and the first of those who wait.
-- KEYS: lock, queue, fence, broken
-- ARGV: how many waiters at most
-- RETURNS: value (empty: free, unless pttl says that there is a key), fence, pttl, time, waiters in all, what was last broken, then member, ticket, ears of each
-- KEEPS: nothing is changed; a replica refuses to answer.
local v = redis.call('GETEX', KEYS[1])
local last = redis.call('GET', KEYS[3])
local broken = redis.call('GET', KEYS[4])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local out = {v or '', last or '0', redis.call('PTTL', KEYS[1]), now, redis.call('ZCARD', KEYS[2]), broken or ''}
-- Not by rank: the range that ends before the first, 0 to -1, would be all of them.
local waiters = redis.call('ZRANGE', KEYS[2], '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
for i = 1, #waiters, 2 do
  local inbox = string.match(waiters[i], '^[^|]*|[^|]*|%d+|(.*)$')
  local ears = 1
  if inbox and inbox ~= '-' then
    local n = redis.pcall('PUBSUB', 'NUMSUB', inbox)
    ears = n.err and 1 or n[2]
  end
  out[#out + 1] = waiters[i]
  out[#out + 1] = string.format('%.0f', tonumber(waiters[i + 1]))
  out[#out + 1] = ears
end
return out
