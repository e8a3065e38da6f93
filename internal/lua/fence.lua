-- FRAGMENT: takes now (µs), gives fence, a decimal string, stored.
-- KEEPS: fences grow: the next is max(last + 1, now), so they grow also when the counter was lost, as long as
-- KEEPS: the clock did not go back meanwhile. What is not a number below 2^53 is no fence and is overwritten.
local fence = string.format('%.0f', now)
local last = redis.call('SET', KEYS[3], fence, 'GET')
last = last and tonumber(string.match(last, '^%d+$'))
if last and last >= now and last < 9007199254740991 then
  fence = string.format('%.0f', last + 1)
  redis.call('SET', KEYS[3], fence)
end
