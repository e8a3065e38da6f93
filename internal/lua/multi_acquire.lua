-- Takes several locks at once that nobody has and nobody waits for.
-- KEYS: lock, queue, fence (of each lock, one after another; then, with quarantine, node)
-- ARGV: all ("1": none unless all are free; "0": those before the first that is not), ttl in ms, then the token for each and (with quarantine) terms
-- RETURNS: granted | held (none was taken), 0, least pttl of what was taken, time, which one is in the way (from 1; 0: none), 0, '', fence and pttl of each that was taken
-- KEEPS: one holder of each; in quarantine nobody is granted what is not its own already; no lock without a TTL; no TTL is shortened; nobody who waits is passed; what is read and of
-- KEEPS: which type is known before anything is written, so all that is to be taken is, or nothing; fences of one slot
-- KEEPS: grow from one lock to the next; a second run with the same tokens finds what the first took, and goes on from
-- KEEPS: there; what an operator broke ("!" in the value) is not raised.
local ttl = tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local most, node, terms = #ARGV, nil, nil
if #KEYS % 3 == 1 then
  node, terms, most = KEYS[#KEYS], ARGV[most], most - 1
end
-- INCLUDE: node
if odds then
  return odds
end
-- It returns nil when the lock is in the way, '' when it is free, and its value when it is the token's already.
local function look(KEYS, token)
  if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
    redis.call('GET', KEYS[3])
    return closed == 0 and '' or nil
  end
  -- GETEX without an option is a GET that a replica refuses.
  local v = redis.call('GETEX', KEYS[1])
  redis.call('ZCARD', KEYS[2])
  return v and string.sub(v, 1, #token + 1) == token .. ':' and v or nil
end
local function take(KEYS, token, v)
  if v == '' then
    -- INCLUDE: fence
    redis.call('SET', KEYS[1], token .. ':' .. fence, 'PX', ttl)
    return fence, ttl
  end
  local pttl = redis.call('PTTL', KEYS[1])
  if pttl < ttl and not string.find(v, '!', #token + 1, true) then
    redis.call('PEXPIRE', KEYS[1], ttl)
    pttl = ttl
  end
  return string.match(v, ':(%d+)', #token + 1) or '0', pttl
end
local keys, values, stop, last = {}, {}, 0, most
for i = 3, most do
  keys[i] = {unpack(KEYS, 3 * i - 8, 3 * i - 6)}
  values[i] = look(keys[i], ARGV[i])
  if not values[i] then
    stop, last = i - 2, ARGV[1] == '1' and 0 or i - 1
    break
  end
end
local taken, least = {}, nil
for i = 3, last do
  local fence, pttl = take(keys[i], ARGV[i], values[i])
  taken[#taken + 1] = fence
  taken[#taken + 1] = pttl
  least = math.min(least or pttl, pttl)
end
return {least and 'granted' or 'held', '0', least or 0, now, stop, 0, '', taken}
