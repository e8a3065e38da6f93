-- FRAGMENT: grant(now, me, ttl, free) gives so many free permits to the first waiters who are still there. It
-- returns the caller's fence when the caller, who gets its whole ttl, is one of them, else nil; how many it gave;
-- and 'nobody' or 'more' when next_head stopped it; none in quarantine. keep() lets the semaphore last as long as its last permit. tell(now)
-- tells the first who goes on waiting when the first of the permits ends.
-- KEEPS: permits go in the order of the tickets, one each: an entry of one that has a permit is dropped, and neither
-- KEEPS: shortens what it has nor costs a waiter its turn; PUBLISH comes last, by pcall: the right to it must not
-- KEEPS: undo what was granted; the semaphore lasts as long as each of its permits. A fence key of another type
-- KEEPS: fails after the head was popped; it comes back at its next poll, with its ticket.
-- INCLUDE: head
local function keep()
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]))
end
local function tell(now)
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  tell_next(first and first - math.floor(now / 1000) or 1)
end
local function grant(now, me, ttl, free)
  local mine, given = nil, 0
  if closed > 0 and free > 0 then
    hold_back(me)
    free = 0
  end
  while given < free do
    local who, ms, inbox = next_head(me)
    if not who then
      return mine, given, ms
    end
    -- INCLUDE: fence
    if who == me then
      ms, inbox = ttl, '-'
    end
    if redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', math.floor(now / 1000) + ms), who) == 1 then
      mine = who == me and fence or mine
      given = given + 1
      keep()
      tell_grant(inbox, who, fence, now, ms)
    end
  end
  return mine, given
end
