-- Says who a client is, for those who ask who holds a lock.
-- KEYS: proc
-- ARGV: text (empty: the client is gone), ttl in ms
-- RETURNS: OK
-- KEEPS: the key has a TTL, so nothing is left of a client that crashed.
if ARGV[1] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 'OK'
