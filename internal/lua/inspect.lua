-- Reads a lock, its last fence and the first of those who wait.
-- KEYS: lock, queue, fence, readers (not touched), broken
-- ARGV: how many waiters at most
-- RETURNS: value (empty: free, unless pttl says that there is a key), fence, pttl, time, waiters in all, what was last broken, then member, ticket, ears of each
-- KEEPS: nothing is changed; a replica refuses to answer.
local most = ARGV[1]
local v = redis.call('GETEX', KEYS[1])
local last = redis.call('GET', KEYS[3])
local broken = redis.call('GET', KEYS[5])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local out = {v or '', last or '0', redis.call('PTTL', KEYS[1]), now, redis.call('ZCARD', KEYS[2]), broken or ''}
-- INCLUDE: waiters
return out
