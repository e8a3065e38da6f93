-- Runs commands that change nothing and returns the error of each, empty where there was none.
-- KEYS: those that the commands use
-- ARGV: for each command the number of its words, then the words
local out, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  local r = redis.pcall(unpack(ARGV, i + 1, i + n))
  out[#out + 1] = type(r) == 'table' and r.err or ''
  i = i + n + 1
end
return out
