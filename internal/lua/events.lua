-- Reads what happened to leases.
-- KEYS: events
-- ARGV: after (the id of the last that is known; empty: the newest are wanted), how many at most
-- RETURNS: time in ms, then id, text of each, oldest first
-- KEEPS: nothing is changed.
local t = redis.call('TIME')
local out = {t[1] * 1000 + math.floor(t[2] / 1000)}
local list, first, last, step
if ARGV[1] == '' then
  list = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[2])
  first, last, step = #list, 1, -1
else
  list = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
  first, last, step = 1, #list, 1
end
for n = first, last, step do
  out[#out + 1] = list[n][1]
  out[#out + 1] = list[n][2][2]
end
return out
