-- Joins the queue that one member of a quorum keeps. It says who tries next, and grants nothing.
-- KEYS: lock, queue
-- ARGV: token, ttl in ms, inbox ("-": wait and poll), ticket (0: none yet), mode (w; W: with a block of fences)
-- RETURNS: waits | free, 1 if it stood in the queue already, pttl, time, position, ears, holder, ticket
-- KEEPS: tickets grow in the order of arrival; one that has a ticket keeps it; the lock is not touched; the first is one
-- KEEPS: who still listens, or the caller.
local token, inbox = ARGV[1], ARGV[3]
local v = redis.call('GETEX', KEYS[1])
local tail = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
-- INCLUDE: enqueue
-- INCLUDE: head
local function drop_dead(me)
  for _ = 1, 1000 do
    local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not head or living(head, me) then
      return
    end
    redis.call('ZPOPMIN', KEYS[2])
  end
end
drop_dead(token)
return {v and 'waits' or 'free', stood > 0 and '1' or '0', redis.call('PTTL', KEYS[1]), now, redis.call('ZRANK', KEYS[2], me) + 1, ears, v or '', string.format('%.0f', ticket)}
