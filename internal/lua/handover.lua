-- FRAGMENT: hand_over(now, me, head, ttl) gives a lock that nobody holds to the first waiter who is still there, and
-- when that is a reader to all readers behind it; head is the first when the caller has popped it already. It returns 'other', the
-- lock's value, the ms granted, and the fence of the caller when it is one of the readers; 'me' when
-- the caller is the first (and takes it itself); 'nobody' or 'more' as next_head does; in quarantine (closed, ms) 'closed',
-- what stands for the holder then, and for how long.
-- KEEPS: PUBLISH comes last, by pcall: the right to it must not undo what was granted. A fence key of another type
-- KEEPS: fails after the head was popped; it comes back at its next poll, with its ticket.
-- INCLUDE: readers
local function hand_over(now, me, head, ttl)
  if closed > 0 then
    hold_back(me)
    return 'closed', 'z1-quarantine', closed
  end
  local who, ms, inbox, mode = next_head(me, head)
  if not who then
    return ms
  end
  if who == me then
    return 'me'
  end
  if mode == 'r' then
    local mine, value, left = admit(now, me, ttl, true, who, ms, inbox)
    return 'other', value, left, mine
  end
  -- INCLUDE: fence
  -- INCLUDE: block
  local value = who .. ':' .. fence
  redis.call('SET', KEYS[1], value, 'PX', ms)
  tell_grant(inbox, who, fence, now, ms)
  tell_next(ms)
  return 'other', value, ms
end
