-- Runs commands that change nothing and returns the error of each, empty where there was none. One that has no form
-- that changes nothing has a word too many: that is an error which only those are told who may run it.
-- KEYS: those that the commands use
-- ARGV: for each command the number of its words, then the words
local out, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  local r = redis.pcall(unpack(ARGV, i + 1, i + n))
  local err = type(r) == 'table' and r.err or ''
  out[#out + 1] = string.find(err, 'wrong number of arguments', 1, true) and '' or err
  i = i + n + 1
end
return out
