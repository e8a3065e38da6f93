-- Takes a lock together with others who only read, or joins the queue of those who wait for it.
-- KEYS: lock, queue, fence, readers, node (only with quarantine)
-- ARGV: token, ttl in ms, inbox (empty: do not wait; "-": wait and poll), ticket (0: none yet), mode (r), terms (only with quarantine)
-- RETURNS: granted | waits | held | again, fence (waits: 1 if it stood in the queue already), pttl, time, position (granted: 1 if it stood in the queue until now and nobody had the lock, 2 if it stood there and others read, or was granted before), ears (granted: ms since it was handed over), holder, ticket, and of readers: 0, how many
-- KEEPS: no reader beside a writer; each reader's lease ends by itself, by the server's clock, and the lock no earlier; no
-- KEEPS: end comes earlier; whoever waits is let in in the order of tickets, and nobody before a writer who came first and
-- KEEPS: still listens; in quarantine nobody is let in; a second run with one token is no second reader.
local token, ttl, inbox = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local node, terms = KEYS[5], ARGV[6]
-- INCLUDE: node
if odds then
  return odds
end
if closed == 0 and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[4]) == 0 then
  -- INCLUDE: fence
  redis.call('SET', KEYS[1], 'z1-read:' .. fence, 'NX', 'PX', ttl)
  redis.call('ZADD', KEYS[4], string.format('%.0f', math.floor(now / 1000) + ttl), token)
  redis.call('PEXPIRE', KEYS[4], ttl)
  return {'granted', fence, ttl, now, 0, 0, '', '0'}
end
-- GETEX without an option is a GET that a replica refuses.
local v = redis.call('GETEX', KEYS[1])
local tail = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
local ms = math.floor(now / 1000)
local reads = v and string.sub(v, 1, 8) == 'z1-read:'
local mine
if reads then
  mine = tonumber(redis.call('ZSCORE', KEYS[4], token) or '')
  mine = mine and mine > ms and mine
end
-- INCLUDE: handover
if mine or reads and not tail[1] and closed == 0 then
  local fence = admit(now, token, ttl, false, token, ttl, '-')
  local age = mine and math.max(0, ms - mine + math.min(ttl, 2000)) or 0
  return {'granted', fence, math.max((mine or 0) - ms, ttl), now, mine and 2 or 0, age, '', '0'}
end
-- INCLUDE: enqueue
local fence, pttl
if reads and closed > 0 then
  v, pttl = 'z1-quarantine', closed
  hold_back(token)
elseif reads then
  stood = stood * 2
  local _
  fence, _, pttl = admit(now, token, ttl)
elseif v then
  pttl = redis.call('PTTL', KEYS[1])
else
  local who
  who, v, pttl, fence = hand_over(now, token, nil, ttl)
  if who == 'more' then
    return {'again', '0', 0, now, 0, 0, '', string.format('%.0f', ticket)}
  end
  if who ~= 'other' and who ~= 'closed' then
    fence = admit(now, token, ttl, true, token, ttl, '-')
  end
end
-- Whoever only tries is not in the queue, and joins those who read when nobody is any more.
if not fence and string.sub(v, 1, 8) == 'z1-read:' and redis.call('EXISTS', KEYS[2]) == 0 then
  fence = admit(now, token, ttl, false, token, ttl, '-')
end
if fence then
  return {'granted', fence, ttl, now, stood, 0, '', '0'}
end
-- INCLUDE: refused
