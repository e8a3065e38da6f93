-- Takes a lock from its holder, for an operator: by asking it to stop, or at once.
-- KEYS: lock, queue, fence, readers, broken, node (only with quarantine)
-- ARGV: token (of a foreign holder its value), how ("ask" or "now"), note, inbox of the holder (empty: none), terms (only with quarantine)
-- RETURNS: asked | taken | handed | deaf | absent | other, fence, pttl, 0, 0, 0, holder
-- KEEPS: only the holder that the operator saw, and no readers (see mark); who is asked keeps the lock until it releases it or its lease ends, which
-- KEEPS: nothing raises any more, and a second asking changes nothing; what is taken goes to the first waiter, in quarantine to nobody,
-- KEEPS: and why stands under the key broken for as long as the holder may ask (at least 60 s; of one whose TTL
-- KEEPS: somebody took off 24 h, the longest lease, since nothing tells until when its holder believes in it);
-- KEEPS: taking it a second time changes nothing.
local token, note = ARGV[1], ARGV[3]
local v = redis.call('GETEX', KEYS[1])
local last = redis.call('GET', KEYS[5])
redis.call('ZCARD', KEYS[2])
local pttl = redis.call('PTTL', KEYS[1])
-- A foreign value may be the beginning of another one's, up to a colon; a token of ours is of nobody else.
local known = string.match(token, '^z1[-/]')
local ours = known and v and string.sub(v, 1, #token + 1) == token .. ':'
if known and not ours and ARGV[2] == 'now' and last and string.sub(last, 1, #token + 1) == token .. ':' then
  return {'taken', string.match(last, ':(%d+)', #token + 1), pttl, 0, 0, 0, v or ''}
end
if not v then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
if not ours and v ~= token or string.sub(v, 1, 8) == 'z1-read:' then
  return {'other', '0', pttl, 0, 0, 0, v}
end
local fence = ours and string.match(v, ':(%d+)', #token + 1) or '0'
local t, node, terms = nil, KEYS[6], ARGV[5]
-- INCLUDE: node
local told = table.concat({'break', token, KEYS[1]}, ' ')
-- INCLUDE: handover
if ARGV[2] == 'ask' then
  if not ours or string.sub(token, 1, 3) ~= 'z1/' then
    return {'deaf', fence, pttl, 0, 0, 0, v}
  end
  if not string.find(v, '!', #token + 1, true) then
    v = token .. ':' .. fence .. '!' .. note
    redis.call('SET', KEYS[1], v, 'KEEPTTL')
  end
  if pttl < 0 then
    pttl = 86400000
    redis.call('PEXPIRE', KEYS[1], pttl)
  end
  if ARGV[4] ~= '' then
    redis.pcall('PUBLISH', ARGV[4], told)
  end
  return {'asked', fence, pttl, 0, 0, 0, v}
end
t = t or redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local who, value = hand_over(now)
if who ~= 'other' then
  redis.call('DEL', KEYS[1])
end
if who == 'closed' then
  value = nil
end
if ours then
  redis.call('SET', KEYS[5], token .. ':' .. fence .. '!' .. note, 'PX', pttl < 0 and 86400000 or math.max(pttl, 60000))
end
if ARGV[4] ~= '' then
  redis.pcall('PUBLISH', ARGV[4], told)
end
return {who == 'other' and 'handed' or 'taken', fence, pttl, 0, 0, 0, value or ''}
