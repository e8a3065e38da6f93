-- Reads what is left of a lease that is over: the last fence of its slot, and why an operator took it away.
-- KEYS: fence, marks
-- ARGV: token
-- RETURNS: last fence (0: none), value with its mark (empty: none)
-- KEEPS: nothing is changed; a replica refuses to answer.
local last = redis.call('GETEX', KEYS[1])
local note = redis.call('HGET', KEYS[2], ARGV[1])
return {last or '0', note and ARGV[1] .. ':0!' .. note or ''}
