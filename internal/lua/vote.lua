-- Takes the lock at one member of a quorum when it is free there: a vote, of which the client counts how many it has.
-- KEYS: lock, queue (not touched), fence, node
-- ARGV: token, ttl in ms, terms, the fence that the client proposes (0: none)
-- RETURNS: granted | held | quarantine, fence, pttl (quarantine: ms left), time, 0, 0, holder
-- KEEPS: one vote; it has a TTL, and none is shortened; a member that may have lost a vote gives none, not even one again,
-- KEEPS: until each that it may have given is over; nobody is passed on to: who is next is not for one member to say; a
-- KEEPS: second run with one token changes nothing; what an operator broke ("!" in the value) is not raised; a fence that is
-- KEEPS: proposed is taken when it is a little ahead of the clock here, by less than a quarantine, so that members whose
-- KEEPS: clocks differ little give one fence.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local node, terms = KEYS[4], ARGV[3]
-- INCLUDE: node
if odds then
  return odds
end
if closed > 0 then
  return {'quarantine', '0', closed, now, 0, 0, ''}
end
local token, ttl = ARGV[1], tonumber(ARGV[2])
if redis.call('EXISTS', KEYS[1]) == 0 then
  local time, proposed = now, tonumber(ARGV[4])
  if proposed > now and proposed < now + 1000000 then
    now = proposed
  end
  -- INCLUDE: fence
  redis.call('SET', KEYS[1], token .. ':' .. fence, 'NX', 'PX', ARGV[2])
  return {'granted', fence, ttl, time, 0, 0, ''}
end
-- GETEX without an option is a GET that a replica refuses.
local v = redis.call('GETEX', KEYS[1])
local pttl = redis.call('PTTL', KEYS[1])
if string.sub(v, 1, #token + 1) ~= token .. ':' then
  return {'held', '0', pttl, now, 0, 0, v}
end
if pttl < ttl and not string.find(v, '!', #token + 1, true) then
  redis.call('PEXPIRE', KEYS[1], ttl)
  pttl = ttl
end
return {'granted', string.match(v, ':(%d+)', #token + 1) or '0', pttl, now, 0, 0, ''}
