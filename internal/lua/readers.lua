-- FRAGMENT: admit(now, me, ttl, anew, who, ms, inbox) lets readers in: the waiter who, when the caller has taken it off
-- the queue already, and all readers at the queue's head, up to 1,000; in quarantine (closed) only who. anew says that the lock is not the readers'
-- already; then who is given. It returns the caller's fence when the caller, who gets its whole ttl (nil: it does
-- not come to read), is one of them, else nil; the lock's value when anybody was let in, else whether it told who is first now; and the ms left of
-- the lock.
-- KEEPS: the lock lasts as long as each of its readers; those of an earlier time are none; a reader behind a writer
-- KEEPS: who is still there is not let in; an entry of one that reads is dropped, and neither shortens what it has nor is
-- KEEPS: told of; PUBLISH comes last, by pcall; a fence key of another type fails after an entry was taken off, which
-- KEEPS: comes back at its next poll, with its ticket.
-- INCLUDE: head
local function admit(now, me, ttl, anew, who, ms, inbox)
  local base = math.floor(now / 1000)
  if anew then
    redis.call('DEL', KEYS[4])
  else
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', string.format('%.0f', base))
  end
  local told, dropped, n, mine, value, mode = {}, false, 0, nil, nil, nil
  while n < 1000 do
    n = n + 1
    if not who then
      local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
      if not head or closed > 0 then
        break
      end
      who, ms, inbox, mode = living(head, me)
      if who and mode ~= 'r' then
        break
      end
      redis.call('ZREM', KEYS[2], head)
      dropped = dropped or not who
    end
    if who then
      -- INCLUDE: fence
      if ttl and who == me then
        ms, inbox, mine = ttl, '-', fence
      end
      value = 'z1-read:' .. fence
      if redis.call('ZADD', KEYS[4], who == me and 'GT' or 'NX', string.format('%.0f', base + ms), who) == 1 then
        told[#told + 1] = {inbox, who, fence, ms}
      end
      who = nil
    end
  end
  -- Ends are those of the last reader, not so many ms from now: TIME may be later than the instant from which the server counts.
  local last = tonumber(redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2] or 0)
  local left = math.max(last - base, anew and 0 or redis.call('PTTL', KEYS[1]))
  if value then
    local at = string.format('%.0f', base + left)
    redis.call('SET', KEYS[1], value, 'PXAT', at)
    redis.call('PEXPIREAT', KEYS[4], at)
  end
  for _, one in ipairs(told) do
    tell_grant(one[1], one[2], one[3], now, one[4])
  end
  if closed > 0 then
    hold_back(me)
  elseif value or dropped then
    tell_next(n < 1000 and left or 1)
  end
  return mine, value or dropped or closed > 0, left
end
