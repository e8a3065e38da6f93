-- FRAGMENT: takes token, inbox, now (µs) and tail, the last of the queue with its ticket; puts the caller into the
-- queue if it waits; gives me, its entry, ears, stood (1 if it stood there until now) and its ticket.
-- KEEPS: tickets grow in the order of arrival; one that has a ticket keeps it; the queue has a TTL.
local me = ARGV[5] .. '|' .. token .. '|' .. ARGV[2] .. '|' .. inbox
local ears, stood, ticket = 0, 0, tonumber(ARGV[4])
if inbox ~= '' then
  if inbox ~= '-' then
    ears = redis.call('PUBSUB', string.sub(inbox, -1) == '}' and 'SHARDNUMSUB' or 'NUMSUB', inbox)[2]
  end
  if ticket == 0 then
    ticket = math.max(now, (tonumber(tail[2]) or 0) + 1)
  end
  if redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', ticket), me) == 0 then
    stood, ticket = 1, tonumber(redis.call('ZSCORE', KEYS[2], me))
  end
  redis.call('PEXPIRE', KEYS[2], 900000)
end
