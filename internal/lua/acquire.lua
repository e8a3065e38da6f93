-- Takes the lock when it is free, or joins the queue of those who wait for it.
-- KEYS: lock, queue, fence, readers, node (only with quarantine)
-- ARGV: token, ttl in ms, inbox (empty: do not wait; "-": wait and poll), ticket (0: none yet), mode (w; W: with a block of fences), terms (only with quarantine)
-- RETURNS: granted | waits | held | again, fence (waits: 1 if it stood in the queue already), pttl, time, position (granted: 1 if it stood in the queue until now, 2 if it was granted before), ears, holder, ticket, and of readers: 0, how many
-- KEEPS: one holder; no lock without a TTL; no TTL is shortened; whoever waits is granted in the order of
-- KEEPS: tickets and nobody before the first who still listens; a second run with one token changes nothing;
-- KEEPS: in quarantine nobody is granted what is not its own already; what an operator broke ("!" in the value) is not raised.
local mode = ARGV[5]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local node, terms = KEYS[5], ARGV[6]
-- INCLUDE: node
if odds then
  return odds
end
if closed == 0 and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  -- INCLUDE: fence
  -- INCLUDE: block
  redis.call('SET', KEYS[1], ARGV[1] .. ':' .. fence, 'NX', 'PX', ARGV[2])
  return {'granted', fence, tonumber(ARGV[2]), now, 0, 0, '', '0'}
end
-- GETEX without an option is a GET that a replica refuses, so that nobody is ever told what a stale copy says.
local token, ttl, inbox = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local v = redis.call('GETEX', KEYS[1])
local tail = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
if v and string.sub(v, 1, #token + 1) == token .. ':' then
  local pttl = redis.call('PTTL', KEYS[1])
  if pttl < ttl and not string.find(v, '!', #token + 1, true) then
    redis.call('PEXPIRE', KEYS[1], ttl)
    pttl = ttl
  end
  return {'granted', string.match(v, ':(%d+)', #token + 1), pttl, now, 2, 0, '', '0'}
end
-- INCLUDE: enqueue
local pttl
if v then
  pttl = redis.call('PTTL', KEYS[1])
else
  -- INCLUDE: handover
  local who
  who, v, pttl = hand_over(now, token)
  if who == 'more' then
    return {'again', '0', 0, now, 0, 0, '', string.format('%.0f', ticket)}
  end
  if who ~= 'other' and who ~= 'closed' then
    -- INCLUDE: fence
    -- INCLUDE: block
    redis.call('SET', KEYS[1], token .. ':' .. fence, 'PX', ARGV[2])
    tell_next(ARGV[2])
    return {'granted', fence, ttl, now, stood, 0, '', '0'}
  end
end
-- INCLUDE: refused
