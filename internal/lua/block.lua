-- FRAGMENT: takes mode and fence; reserves the 4,095 fences behind it for a waiter of mode W, who passes the lock on
-- among the goroutines of its own process.
-- KEEPS: no fence of a block is given to anybody else.
if mode == 'W' then
  redis.call('SET', KEYS[3], string.format('%.0f', fence + 4095))
end
