-- Writes down what happened to leases, for operators.
-- KEYS: events
-- ARGV: how many to keep, ttl in ms, then the texts
-- RETURNS: OK
-- KEEPS: the oldest go when there are more than may be kept; the key has a TTL.
for i = 3, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '=', ARGV[1], '*', 'e', ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'OK'
