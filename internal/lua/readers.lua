-- FRAGMENT: admit(now, me, ttl, anew, who, ms, inbox) lets readers in: the waiter who, when the caller has taken it off
-- the queue already, and all readers at the queue's head, up to 1,000. anew says that the lock is not the readers'
-- already; then who is given. It returns the caller's fence when the caller, who gets its whole ttl, is one of
-- them, else nil; when anybody was let in the lock's value, else nil; and the ms left of the lock. ends(ms) is how many ms are
-- left of the last reader's lease, 0 without one.
-- KEEPS: the lock lasts as long as each of its readers; those of an earlier time are none; a reader behind a writer
-- KEEPS: who is still there is not let in; PUBLISH comes last, by pcall; a fence key of another type fails after an
-- KEEPS: entry was taken off, which comes back at its next poll, with its ticket.
-- INCLUDE: head
local function ends(ms)
  local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
  return math.max(0, tonumber(last or 0) - ms)
end
local function admit(now, me, ttl, anew, who, ms, inbox)
  if anew then
    redis.call('DEL', KEYS[4])
  end
  local told, base, dropped, mine, value, mode = {}, math.floor(now / 1000), false, nil, nil, nil
  local n = 0
  while n < 1000 do
    n = n + 1
    if not who then
      local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
      if not head then
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
      if who == me then
        ms, inbox, mine = ttl, '-', fence
      end
      redis.call('ZADD', KEYS[4], 'GT', string.format('%.0f', base + ms), who)
      value = 'z1-read:' .. fence
      told[#told + 1] = {inbox, who, fence, ms}
      who = nil
    end
  end
  local left = math.max(ends(base), anew and 0 or redis.call('PTTL', KEYS[1]))
  if value then
    redis.call('SET', KEYS[1], value, 'PX', left)
    redis.call('PEXPIRE', KEYS[4], left)
  end
  for _, one in ipairs(told) do
    tell_grant(one[1], one[2], one[3], now, one[4])
  end
  if value or dropped then
    tell_next(n < 1000 and left or 1)
  end
  return mine, value, left
end
