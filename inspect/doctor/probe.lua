-- Runs commands that change nothing and returns the error of each, empty where there was none.
-- KEYS: those that the commands use
-- ARGV: for each command the number of its words, then the words
-- HSET has no form that changes nothing: what it makes is taken away again, and it runs only where that may be done;
-- elsewhere it has no error of its own.
local function run(...)
  local command, key = ...
  if command ~= 'HSET' then
    return redis.pcall(...)
  end
  if redis.pcall('DEL', key) ~= 0 then
    return ''
  end
  local r = redis.pcall(...)
  redis.pcall('DEL', key)
  return r
end
local out, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  local r = run(unpack(ARGV, i + 1, i + n))
  out[#out + 1] = type(r) == 'table' and r.err or ''
  i = i + n + 1
end
return out
