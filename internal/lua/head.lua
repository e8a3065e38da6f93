-- FRAGMENT: living(head, me) takes an entry of the queue apart: its token, the ms to grant it, its inbox and its mode
-- when its waiter is still there or is the caller, else nil. next_head(me, head) takes the first such off the queue;
-- head is the first when the caller has popped it already. It returns what living does, or nil and 'nobody' when
-- the queue is used up, or nil and 'more' when 1,000 dead waiters were dropped and there are more. tell_next(ms)
-- tells the first who goes on waiting that it is the first now, and when to ask at the latest. hold_back(me) is for a
-- quarantine (closed, ms): it drops the dead, up to 1,000, before the first who is there, and tells that one, unless it is the caller. An inbox that ends
-- in "}" is of a slot of a cluster: who listens to it counts at the primary alone, and what is sent to it stays there.
-- KEEPS: a waiter whose inbox nobody hears is dropped and never published to: PUBLISH counts also those who
-- KEEPS: only match a pattern, and a message counted 0 may still arrive elsewhere. The head gets 2 s (one that polls
-- KEEPS: 1 s), so one that is frozen costs no more; its first renewal raises that. Whoever is first knows it, so
-- KEEPS: that a holder who dies is noticed when its lease ends.
local function tell(inbox, words)
  if string.sub(inbox, -1) == '}' then
    redis.pcall('SPUBLISH', inbox, table.concat(words, ' '))
  else
    redis.pcall('PUBLISH', inbox, table.concat(words, ' '))
  end
end
local function tell_next(ms)
  local who, inbox = string.match(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or '', '^[^|]*|([^|]*)|%d+|(.+)$')
  if inbox and inbox ~= '-' then
    tell(inbox, {'next', who, ms, KEYS[1]})
  end
end
local function tell_grant(inbox, who, fence, now, ms)
  if inbox ~= '-' then
    tell(inbox, {'grant', who, fence, string.format('%.0f', now), ms, KEYS[1]})
  end
end
local function living(head, me)
  local mode, who, ttl, inbox = string.match(head, '^([^|]*)|([^|]*)|(%d+)|(.*)$')
  if not who then
    return nil
  end
  if who ~= me and inbox ~= '-' then
    local n = redis.pcall('PUBSUB', string.sub(inbox, -1) == '}' and 'SHARDNUMSUB' or 'NUMSUB', inbox)
    if not n.err and n[2] == 0 then
      return nil
    end
  end
  return who, math.max(1, math.min(tonumber(ttl), inbox == '-' and 1000 or 2000)), inbox, mode
end
local function next_head(me, head)
  for _ = 1, 1000 do
    head = head or redis.call('ZPOPMIN', KEYS[2])[1]
    if not head then
      return nil, 'nobody'
    end
    local who, ms, inbox, mode = living(head, me)
    if who then
      return who, ms, inbox, mode
    end
    head = nil
  end
  return nil, 'more'
end
local function hold_back(me)
  local who
  for _ = 1, 1000 do
    local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    who = head and living(head, me)
    if who or not head then
      break
    end
    redis.call('ZREM', KEYS[2], head)
  end
  if not who or who ~= me then
    tell_next(closed)
  end
end
