-- Lists the clients that have said who they are.
-- KEYS: procs
-- ARGV: none (not touched)
-- RETURNS: time in ms, then id, expiry in ms of each, in the order of their expiry
-- KEEPS: only those are taken off the list whose text has expired; a replica refuses to answer.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - 1000))
local out = {now}
local clients = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #clients, 2 do
  out[#out + 1] = clients[i]
  out[#out + 1] = string.format('%.0f', tonumber(clients[i + 1]))
end
return out
