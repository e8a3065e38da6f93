-- Says of an empty server that it is new, so that it serves at once, or reads what is said of the server (see node).
-- KEYS: node
-- ARGV: terms (empty: only read)
-- RETURNS: stamped | stands (it was before) | used (not empty) | read, 0, ms of quarantine left by what the key says, time, 0, 0, value of the key, run_id of the process (empty when neither is known)
-- KEEPS: only a server without a single key is stamped, and nothing else is changed; a replica refuses to answer.
local terms = ARGV[1]
local v = redis.call('GETEX', KEYS[1]) or ''
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local base = math.floor(now / 1000)
local run = v == '' and terms == '' and '' or string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local was, ends, said = string.match(v, '^(%w+) (%d+) (%d+ .+)$')
local status = 'used'
if terms == '' then
  status = 'read'
elseif not redis.call('RANDOMKEY') then
  status, ends = 'stamped', base
  v = run .. ' ' .. string.format('%.0f', base) .. ' ' .. terms
  redis.call('SET', KEYS[1], v)
elseif was == run and said == terms then
  status = 'stands'
end
return {status, '0', math.max(tonumber(ends or '0') - base, 0), now, 0, 0, v, run}
