-- FRAGMENT: hand_over(now, me) gives a lock that nobody holds to the first waiter who is still there.
-- It returns 'other', its value and the ms granted; 'me' when the caller is the first (and takes it itself);
-- 'nobody' when the queue is used up; 'more' when 1,000 dead waiters were dropped and there are more.
-- KEEPS: a waiter whose inbox nobody hears is dropped and never published to: PUBLISH counts also those who
-- KEEPS: only match a pattern, and a message counted 0 may still arrive elsewhere. PUBLISH comes last, by pcall:
-- KEEPS: the right to it must not undo what was granted. The head gets 2 s (one that polls 1 s), so one that
-- KEEPS: is frozen costs no more; its first renewal raises that.
local function hand_over(now, me)
  for _ = 1, 1000 do
    local head = redis.call('ZPOPMIN', KEYS[2])[1]
    if not head then
      return 'nobody'
    end
    local who, ttl, inbox = string.match(head, '^[^|]*|([^|]*)|(%d+)|(.*)$')
    if who and who == me then
      return 'me'
    end
    local ears = 0
    if inbox == '-' then
      ears = 1
    elseif inbox then
      local n = redis.pcall('PUBSUB', 'NUMSUB', inbox)
      ears = n.err and 1 or n[2]
    end
    if ears > 0 then
      local ms = math.max(1, math.min(tonumber(ttl), inbox == '-' and 1000 or 2000))
      -- INCLUDE: fence
      local value = who .. ':' .. fence
      redis.call('SET', KEYS[1], value, 'PX', ms)
      if inbox ~= '-' then
        redis.pcall('PUBLISH', inbox, table.concat({'grant', who, fence, string.format('%.0f', now), ms, KEYS[1]}, ' '))
      end
      return 'other', value, ms
    end
  end
  return 'more'
end
