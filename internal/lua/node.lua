-- FRAGMENT: takes t (nil, or TIME as it was read), node (a key; nil: without quarantine) and terms, what the client knows of the
-- deployment, 'MAXTTL_MS MEMBERS': its longest lease, and the sorted names of a quorum's members with commas between, '-'
-- for one server. Gives closed, the ms for which nobody may be granted anything (0: all is well), and odds, an error to reply
-- when the deployment was told other terms (else nil): then closed is not 0 either. The key is 'RUN_ID UNTIL_MS MAXTTL_MS MEMBERS'.
-- KEEPS: nobody is granted anything for MAXTTL_MS after a process was first seen with data that it has not had all along (or
-- KEEPS: with none), since a lease may be missing there, and the longest is over then; when the clock was set back that begins
-- KEEPS: anew, so it never lasts longer; who was told other terms changes nothing here and grants nobody anything; the key has no TTL.
local closed, odds = 0, nil
if node then
  t = t or redis.call('TIME')
  local base = t[1] * 1000 + math.floor(t[2] / 1000)
  local most = tonumber(string.match(terms, '^%d+'))
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local was, ends, said = string.match(redis.call('GET', node) or '', '^(%w+) (%d+) (%d+ .+)$')
  if said and said ~= terms then
    closed, odds = most, redis.error_reply('ERR zamok: other terms: the server has ' .. said .. ' and the client ' .. terms)
  else
    closed = tonumber(ends or '0') - base
    if not run or was ~= run or closed > most then
      closed = most
      redis.call('SET', node, run .. ' ' .. string.format('%.0f', base + most) .. ' ' .. terms)
    end
    closed = math.max(closed, 0)
  end
end
