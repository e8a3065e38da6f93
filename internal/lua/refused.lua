-- FRAGMENT: answers one that does not get the lock; takes inbox, me, pttl, now, ears, stood, ticket and v, the lock's value. When
-- readers have the lock it names one of them instead, the first whose lease ends, and adds 0 and how many there are.
-- KEEPS: nothing is changed; a reader whose lease has ended is not named.
local out = {'held', '0', pttl, now, 0, 0, v, '0'}
if inbox ~= '' then
  out = {'waits', stood > 0 and '1' or '0', pttl, now, redis.call('ZRANK', KEYS[2], me) + 1, ears, v, string.format('%.0f', ticket)}
end
if string.sub(v, 1, 8) == 'z1-read:' then
  local after = string.format('(%.0f', math.floor(now / 1000))
  out[7] = redis.call('ZRANGE', KEYS[4], after, '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1] or ''
  out[9], out[10] = 0, redis.call('ZCOUNT', KEYS[4], after, '+inf')
end
return out
