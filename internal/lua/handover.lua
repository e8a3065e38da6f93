-- FRAGMENT: hand_over(now, me, head) gives a lock that nobody holds to the first waiter who is still there; head
-- is the first when the caller has popped it already. It returns 'other', its value and the ms granted; 'me' when
-- the caller is the first (and takes it itself); 'nobody' when the queue is used up; 'more' when 1,000 dead
-- waiters were dropped and there are more. tell_next(ms) tells the first who goes on waiting that it is the first
-- now, and for how many ms the lock is granted.
-- KEEPS: a waiter whose inbox nobody hears is dropped and never published to: PUBLISH counts also those who
-- KEEPS: only match a pattern, and a message counted 0 may still arrive elsewhere. PUBLISH comes last, by pcall:
-- KEEPS: the right to it must not undo what was granted. The head gets 2 s (one that polls 1 s), so one that
-- KEEPS: is frozen costs no more; its first renewal raises that. Whoever is first knows it, so that a holder who
-- KEEPS: dies is noticed when its lease ends. A fence key of another type fails after the head was popped; it
-- KEEPS: comes back at its next poll, with its ticket.
local function tell_next(ms)
  local who, inbox = string.match(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or '', '^[^|]*|([^|]*)|%d+|(.+)$')
  if inbox and inbox ~= '-' then
    redis.pcall('PUBLISH', inbox, table.concat({'next', who, ms, KEYS[1]}, ' '))
  end
end
local function hand_over(now, me, head)
  for _ = 1, 1000 do
    head = head or redis.call('ZPOPMIN', KEYS[2])[1]
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
      tell_next(ms)
      return 'other', value, ms
    end
    head = nil
  end
  return 'more'
end
