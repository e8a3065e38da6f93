-- FRAGMENT: hand_over(now, me, head) gives a lock that nobody holds to the first waiter who is still there; head
-- is the first when the caller has popped it already. It returns 'other', its value and the ms granted; 'me' when
-- the caller is the first (and takes it itself); 'nobody' or 'more' as next_head does.
-- KEEPS: PUBLISH comes last, by pcall: the right to it must not undo what was granted. A fence key of another type
-- KEEPS: fails after the head was popped; it comes back at its next poll, with its ticket.
-- INCLUDE: head
local function hand_over(now, me, head)
  local who, ms, inbox = next_head(me, head)
  if not who then
    return ms
  end
  if who == me then
    return 'me'
  end
  -- INCLUDE: fence
  local value = who .. ':' .. fence
  redis.call('SET', KEYS[1], value, 'PX', ms)
  tell_grant(inbox, who, fence, now, ms)
  tell_next(ms)
  return 'other', value, ms
end
