-- Reads what is left of a lease that is over, of one who shared: the last fence of its slot, and why an operator took it away.
-- KEYS: fence, marks, broken
-- ARGV: token
-- RETURNS: last fence (0: none), value with its mark, or what was broken while it shared nothing yet (empty: none)
-- KEEPS: nothing is changed; a replica refuses to answer.
local token = ARGV[1]
local last = redis.call('GETEX', KEYS[1])
local note = redis.call('HGET', KEYS[2], token)
local broken = redis.call('GET', KEYS[3])
if not broken or string.sub(broken, 1, #token + 1) ~= token .. ':' then
  broken = ''
end
return {last or '0', note and token .. ':0!' .. note or broken}
