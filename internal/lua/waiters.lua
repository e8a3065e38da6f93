-- FRAGMENT: takes out, a reply, and most; adds member, ticket and ears of each of the first so many who wait.
-- KEEPS: nothing is changed.
-- Not by rank: the range that ends before the first, 0 to -1, would be all of them.
local waiters = redis.call('ZRANGE', KEYS[2], '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
for i = 1, #waiters, 2 do
  local inbox = string.match(waiters[i], '^[^|]*|[^|]*|%d+|(.*)$')
  local ears = 1
  if inbox and inbox ~= '-' then
    local n = redis.pcall('PUBSUB', string.sub(inbox, -1) == '}' and 'SHARDNUMSUB' or 'NUMSUB', inbox)
    ears = n.err and 1 or n[2]
  end
  out[#out + 1] = waiters[i]
  out[#out + 1] = string.format('%.0f', tonumber(waiters[i + 1]))
  out[#out + 1] = ears
end
