package diff

import (
	"strings"
	"testing"
)

// mutants are ways to break the scripts, each a mistake that somebody could
// make. Every one must show within enough operations, or the comparison could
// not be trusted to see the next one.
var mutants = []struct {
	name, script string
	old, new     string
}{
	{"the last in the queue is served first", "release", "'ZPOPMIN'", "'ZPOPMAX'"},
	{"a grant in acquire goes to the last", "acquire", "'ZPOPMIN'", "'ZPOPMAX'"},
	{"no ticket behind the tail", "acquire", "math.max(now, (tonumber(tail[2]) or 0) + 1)", "now"},
	{"the place in the queue is lost by asking again", "acquire", "'ZADD', KEYS[2], 'NX'", "'ZADD', KEYS[2]"},
	{"an old ticket is ignored", "acquire", "if ticket == 0 then", "if true then"},
	{"whoever is dead gets the lock", "release", "if ears > 0 then", "if true then"},
	{"whoever is dead is told", "release", "if ears > 0 then", "if inbox then redis.pcall('PUBLISH', inbox, 'grant') end\n    if ears > 0 then"},
	{"nobody is told", "release", "if inbox ~= '-' then", "if false then"},
	{"one that polls gets as long as one that listens", "release", "inbox == '-' and 1000 or 2000", "2000"},
	{"the head gets its whole ttl", "acquire", "math.min(tonumber(ttl), inbox == '-' and 1000 or 2000)", "tonumber(ttl)"},
	{"the head gets more than it asked for", "acquire", "math.min(tonumber(ttl), inbox == '-' and 1000 or 2000)", "2000"},
	{"a renewal shortens", "renew", "pttl < ttl then", "true then"},
	{"asking again shortens", "acquire", "if pttl < ttl then", "if true then"},
	{"resuming shortens", "resume", "pttl = math.max(pttl, ttl)", "pttl = ttl"},
	{"resuming keeps the fence", "resume", "new .. ':' .. fence, 'PX'", "new .. string.sub(v, #old + 1), 'PX'"},
	{"the fence is only the clock", "acquire", "string.format('%.0f', last + 1)", "string.format('%.0f', now)"},
	{"the fence is only a counter", "acquire", "last and last >= now and last < 9007199254740991", "last and last < 9007199254740991"},
	{"a fence of 2^53", "release", "last < 9007199254740991", "last < 9007199254740993"},
	{"digits of the fence are lost", "acquire", "string.format('%.0f', last + 1)", "tostring(last + 1)"},
	{"a token that begins like the holder's is the holder's", "release", "#token + 1) == token .. ':'", "#token) == token"},
	{"whoever releases frees the lock", "release", "local mine = v and string.sub(v, 1, #token + 1) == token .. ':'", "local mine = v"},
	{"a place in the queue is not given up", "release", "redis.call('ZREM', KEYS[2], ARGV[2])", "0"},
	{"the next is not told of a hand-over", "release", "tell_next(ms)\n      return", "return"},
	{"the next is not told of a grant by poll", "acquire", "tell_next(ARGV[2])", ""},
	{"the next is not told that the first has left", "release", "rank == 0", "false"},
	{"whoever stands anywhere tells the first", "release", "v and rank == 0", "v"},
	{"a client that is gone stays known", "announce", "redis.call('DEL', KEYS[1])", ""},
	{"the queue's type is not checked first", "acquire", "redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')", "{}"},
	{"a free lock is left to the queue", "release", "if not mine and redis.call('EXISTS', KEYS[2]) == 0 then", "if not mine then"},
	{"one that tries barges past the queue", "acquire", "redis.call('EXISTS', KEYS[1], KEYS[2])", "redis.call('EXISTS', KEYS[1])"},
	{"the queue never ends", "acquire", "redis.call('PEXPIRE', KEYS[2], 900000)", ""},
	{"a dead waiter too many is dropped", "acquire", "for _ = 1, 1000 do", "for _ = 1, 1001 do"},
	{"the rest does not last", "release", "'PX', ARGV[3])", "'PX', 1)"},
	{"a guarded call runs twice", "guard", "'1', 'NX', 'PX', 60000", "'1', 'PX', 60000"},
	{"a guarded call runs without the lock", "guard", "string.sub(v, 1, #token + 1) ~= token .. ':'", "false"},
	{"a guarded call is forgotten too soon", "guard", "60000", "6000"},
	{"inspect shows all when it shall show none", "inspect", "'-inf', '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1]", "0, tonumber(ARGV[1]) - 1"},
	{"a renewal makes a lock anew", "renew", "if not v then", "if not v then redis.call('SET', KEYS[1], token .. ':1', 'PX', 1000)"},
}

func TestMutantsAreSeen(t *testing.T) {
	const enough = 60 // histories
	w := newWorld(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			right := w.sources[m.script]
			defer func() { w.sources[m.script] = right }()
			if !strings.Contains(right, m.old) {
				t.Fatalf("%s.lua has no %q", m.script, m.old)
			}
			w.sources[m.script] = strings.Replace(right, m.old, m.new, 1)
			for seed := range uint64(enough) {
				_, difference, err := w.history(seed, perHistory)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(difference, "the server replies \"error ERR\"") {
					t.Fatalf("the broken script does not even run: %s", difference)
				}
				if difference != "" {
					return
				}
			}
			t.Errorf("%d operations did not show it", enough*perHistory)
		})
	}
}
