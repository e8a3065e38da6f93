-- Gives up the lock by its own key, while its slot is on its way to another server and the queue's key at the other one.
-- KEYS: lock
-- ARGV: token
-- RETURNS: released | absent | other, fence, pttl, 0, 0, 0, holder
-- KEEPS: only the holder's token ends the lock; nobody is granted it: the queue stands as it is, and release hands over
-- KEEPS: to it, or whoever asks next; a second run changes nothing.
local token = ARGV[1]
local v = redis.call('GETEX', KEYS[1])
if not v then
  return {'absent', '0', -2, 0, 0, 0, ''}
end
if string.sub(v, 1, #token + 1) ~= token .. ':' then
  return {'other', '0', redis.call('PTTL', KEYS[1]), 0, 0, 0, v}
end
redis.call('DEL', KEYS[1])
return {'released', string.match(v, ':(%d+)', #token + 1) or '0', 0, 0, 0, 0, ''}
