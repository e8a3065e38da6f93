-- Says who a client is and what it holds, for those who ask who holds a lock.
-- KEYS: procs, proc
-- ARGV: id, text (empty: the client is gone), ttl in ms
-- RETURNS: OK
-- KEEPS: both keys have a TTL, and those whose time has passed are taken off the list, so nothing is left of a
-- KEEPS: client that crashed; nobody is taken off while its text is there.
if ARGV[2] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('DEL', KEYS[2])
  return 'OK'
end
local ttl = tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ttl), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - 1000))
if redis.call('PTTL', KEYS[1]) < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 'OK'
