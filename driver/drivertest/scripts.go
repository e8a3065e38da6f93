package drivertest

import (
	"strconv"

	"github.com/zamok-go/zamok/driver"
)

// The scripts of the suite that need no data.
var (
	echo    = driver.NewScript("echo", "return ARGV[1]")
	integer = driver.NewScript("integer", "return tonumber(ARGV[1])")
	null    = driver.NewScript("null", "return false")
	nested  = driver.NewScript("nested", "return {1, ARGV[1], {}, {false, {2, ARGV[2]}}}")
	counts  = driver.NewScript("counts", "return {#KEYS, #ARGV, KEYS[#KEYS] or '', ARGV[#ARGV] or ''}")
	refuse  = driver.NewScript("refuse", "return redis.error_reply(ARGV[1])")
	publish = driver.NewScript("publish", "return redis.call('PUBLISH', ARGV[1], ARGV[2])")
)

// The scripts that need a server.
var (
	incr        = driver.NewScript("incr", "return redis.call('INCR', KEYS[1])")
	readCounter = driver.NewScript("read", "return redis.call('GET', KEYS[1])")
	// once is written as all scripts with an effect must be: a second run, by a
	// library that repeats what was not answered, does nothing.
	once = driver.NewScript("once", `
if redis.call('SET', KEYS[1], '1', 'NX') then
  redis.call('INCR', KEYS[2])
  return 'first'
end
return 'again'`)
)

// Twin is a script of the suite and the same in Go, for drivers that run no
// Lua.
type Twin struct {
	Script *driver.Script
	// Run returns nil, an int64, a string or a []any, or a *driver.ServerError.
	// publish publishes a message and returns how many subscriptions it went to.
	Run func(publish func(channel, payload string) int64, keys, args []string) (any, error)
}

// Twins returns the scripts that RunScripts uses.
func Twins() []Twin {
	type publisher = func(channel, payload string) int64
	last := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return list[len(list)-1]
	}
	return []Twin{
		{echo, func(_ publisher, _, args []string) (any, error) { return args[0], nil }},
		{integer, func(_ publisher, _, args []string) (any, error) {
			n, err := strconv.ParseInt(args[0], 10, 64)
			return n, err
		}},
		{null, func(publisher, []string, []string) (any, error) { return nil, nil }},
		{nested, func(_ publisher, _, args []string) (any, error) {
			return []any{int64(1), args[0], []any{}, []any{nil, []any{int64(2), args[1]}}}, nil
		}},
		{counts, func(_ publisher, keys, args []string) (any, error) {
			return []any{int64(len(keys)), int64(len(args)), last(keys), last(args)}, nil
		}},
		{refuse, func(_ publisher, _, args []string) (any, error) {
			return nil, &driver.ServerError{Text: args[0]}
		}},
		{publish, func(publish publisher, _, args []string) (any, error) {
			return publish(args[0], args[1]), nil
		}},
	}
}
