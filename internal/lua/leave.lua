-- Gives up what a token has at one member of a quorum, the vote or a place in the queue, or tells the first who waits there to try.
-- KEYS: lock, queue
-- ARGV: token, member (its entry in the queue; empty: it has none), tell ("1": tell the first who is still there)
-- RETURNS: released | absent | other, fence, pttl, 0, removed from the queue, how many wait, holder
-- KEEPS: only the token's own vote ends; the lock is never given to anybody: a vote is for its owner to ask for; who is told
-- KEEPS: to try leaves the queue, so that one that is frozen costs 2 s, and comes back with its ticket; whoever is the first
-- KEEPS: instead is told; a second run that tells nobody changes nothing.
local token = ARGV[1]
local v = redis.call('GETEX', KEYS[1])
local removed = 0
if ARGV[2] ~= '' then
  removed = redis.call('ZREM', KEYS[2], ARGV[2])
end
local waiting = redis.call('ZCARD', KEYS[2])
local status, fence, pttl = 'absent', '0', -2
if v and string.sub(v, 1, #token + 1) == token .. ':' then
  redis.call('DEL', KEYS[1])
  status, fence, pttl, v = 'released', string.match(v, ':(%d+)', #token + 1) or '0', 0, nil
elseif v then
  status, pttl = 'other', redis.call('PTTL', KEYS[1])
end
if waiting > 0 and (ARGV[3] == '1' or removed > 0) then
  -- INCLUDE: head
  local ms = math.max(pttl, 1)
  if ARGV[3] == '1' then
    local who, _, inbox = next_head()
    if who and inbox ~= '-' then
      tell(inbox, {'next', who, '0', KEYS[1]})
    end
    ms = 2000
  end
  tell_next(ms)
end
return {status, fence, pttl, 0, removed, waiting, v or ''}
