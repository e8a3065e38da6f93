package diff

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/model"
)

// op is one operation, with all that it needs, so that it can be repeated.
type op struct {
	step       int64  // µs by which the clock moves before
	name       string // of a script, or of a command below
	keys, args []string
}

func (o op) String() string {
	return fmt.Sprintf("%+dµs %s %q %q", o.step, o.name, o.keys, o.args)
}

// command is an operation that is no script of zamok: what strangers, operators
// and accidents do to the keys. It is a Lua script too, so that every operation
// is one command. Its reply is not compared.
type command struct {
	lua string
	do  func(s *model.Store, keys, args []string)
}

var commands = map[string]command{
	"set": {"redis.call('SET', KEYS[1], ARGV[1])", func(s *model.Store, keys, args []string) {
		_ = s.Set(keys[0], args[0], 0)
	}},
	"setpx": {"redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])", func(s *model.Store, keys, args []string) {
		_ = s.Set(keys[0], args[0], int64(atoi(args[1])))
	}},
	"list": {"redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'x')", func(s *model.Store, keys, _ []string) {
		s.MakeList(keys[0])
	}},
	"del": {"redis.call('DEL', KEYS[1])", func(s *model.Store, keys, _ []string) {
		s.Del(keys[0])
	}},
	"persist": {"redis.call('PERSIST', KEYS[1])", func(s *model.Store, keys, _ []string) {
		s.Persist(keys[0])
	}},
	"pexpire": {"redis.call('PEXPIRE', KEYS[1], ARGV[1])", func(s *model.Store, keys, args []string) {
		s.PExpire(keys[0], int64(atoi(args[0])))
	}},
	"zadd": {"redis.pcall('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2])", func(s *model.Store, keys, args []string) {
		score, _ := strconv.ParseFloat(args[0], 64)
		_, _ = s.ZAdd(keys[0], args[1], score)
	}},
	// bury leaves many dead waiters before the others.
	"bury":     {`for i = 1, tonumber(ARGV[1]) do redis.pcall('ZADD', KEYS[1], 'NX', i, 'x|t' .. i .. '|5|gone') end`, bury},
	"flushall": {"redis.call('FLUSHALL')", func(s *model.Store, _, _ []string) { s.Flush() }},
}

func bury(s *model.Store, keys, args []string) {
	for i := range atoi(args[0]) {
		_, _ = s.ZAdd(keys[0], fmt.Sprintf("x|t%d|5|gone", i+1), float64(i+1))
	}
}

// guarded is the script of a user that runs under the guard, and its twin. It
// writes before it may fail, since what it wrote must then stay.
const guarded = `redis.call('SET', KEYS[2], FENCE or 'none')
local n = redis.call('INCRBY', KEYS[1], ARGV[1])
if ARGV[2] == 'nil' then return nil end
return {n, FENCE or 'none', #KEYS, #ARGV, ARGV[2]}`

func guardedTwin(s *model.Store) func(keys, args []string, fence string) (any, error) {
	return func(keys, args []string, fence string) (any, error) {
		if fence == "" {
			fence = "none"
		}
		_ = s.Set(keys[1], fence, 0)
		n, err := s.Incr(keys[0], int64(atoi(args[0])))
		if err != nil || args[1] == "nil" {
			return nil, err
		}
		return []any{n, fence, int64(len(keys)), int64(len(args)), args[1]}, nil
	}
}

// sources returns the text of every script by its name, as it is sent.
func sources() map[string]string {
	m := map[string]string{"guard": lua.Guard("x", guarded).Source(), "sem_guard": lua.SemGuard("x", guarded).Source()}
	for _, s := range lua.All() {
		m[s.Name()] = s.Source()
	}
	for name, c := range commands {
		m[name] = c.lua
	}
	return m
}

// isScript says whether the operation's reply counts.
func (o op) isScript() bool {
	_, isCommand := commands[o.name]
	return !isCommand && !strings.HasPrefix(o.name, "conn.")
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
