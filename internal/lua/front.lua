-- FRAGMENT: drop_dead(me) takes off the queue those who stand before the first that is still there or is me.
-- KEEPS: who listens keeps its place; nobody is granted or told anything.
-- INCLUDE: head
local function drop_dead(me)
  for _ = 1, 1000 do
    local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not head or living(head, me) then
      return
    end
    redis.call('ZPOPMIN', KEYS[2])
  end
end
