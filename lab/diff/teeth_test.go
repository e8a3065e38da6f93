package diff

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

type mutant struct {
	name, script string
	old, new     string
}

// mutants are ways to break the scripts, each a mistake that somebody could
// make. Every one must show within enough operations, or the comparison could
// not be trusted to see the next one.
var mutants = []mutant{
	{"the last in the queue is served first", "release", "'ZPOPMIN'", "'ZPOPMAX'"},
	{"a grant in acquire goes to the last", "acquire", "'ZPOPMIN'", "'ZPOPMAX'"},
	{"no ticket behind the tail", "acquire", "math.max(now, (tonumber(tail[2]) or 0) + 1)", "now"},
	{"the place in the queue is lost by asking again", "acquire", "'ZADD', KEYS[2], 'NX'", "'ZADD', KEYS[2]"},
	{"an old ticket is ignored", "acquire", "if ticket == 0 then", "if true then"},
	{"whoever is dead gets the lock", "release", "if not n.err and n[2] == 0 then", "if false then"},
	{"whoever is dead is told", "release", "if not n.err and n[2] == 0 then", "if not n.err and n[2] == 0 then\n      redis.pcall('PUBLISH', inbox, 'grant')"},
	{"who listens at the slot is not heard", "release", "'SHARDNUMSUB' or 'NUMSUB'", "'NUMSUB' or 'NUMSUB'"},
	{"who listens at the slot is told by all", "release", "'SPUBLISH'", "'PUBLISH'"},
	{"who asks at the slot has no ears", "acquire", "ears = redis.call('PUBSUB', string.sub(inbox, -1) == '}'", "ears = redis.call('PUBSUB', false"},
	{"who waits at the slot is shown as dead", "inspect", "'SHARDNUMSUB' or 'NUMSUB'", "'NUMSUB' or 'NUMSUB'"},
	{"nobody is told", "release", "if inbox ~= '-' then", "if false then"},
	{"one that polls gets as long as one that listens", "release", "inbox == '-' and 1000 or 2000", "2000"},
	{"the head gets its whole ttl", "acquire", "math.min(tonumber(ttl), inbox == '-' and 1000 or 2000)", "tonumber(ttl)"},
	{"the head gets more than it asked for", "acquire", "math.min(tonumber(ttl), inbox == '-' and 1000 or 2000)", "2000"},
	{"a renewal shortens", "renew", "pttl < ttl then", "true then"},
	{"asking again shortens", "acquire", "if pttl < ttl and", "if true and"},
	{"resuming shortens", "resume", "pttl = math.max(pttl, ttl)", "pttl = ttl"},
	{"resuming keeps the fence", "resume", "new .. ':' .. fence, 'PX'", "new .. string.sub(v, #old + 1), 'PX'"},
	{"the fence is only the clock", "acquire", "string.format('%.0f', last + 1)", "string.format('%.0f', now)"},
	{"the fence is only a counter", "acquire", "last and last >= now and last < 9007199254740991", "last and last < 9007199254740991"},
	{"a fence of 2^53", "release", "last < 9007199254740991", "last < 9007199254740993"},
	{"digits of the fence are lost", "acquire", "string.format('%.0f', last + 1)", "tostring(last + 1)"},
	{"a token that begins like the holder's is the holder's", "release", "#token + 1) == token .. ':'", "#token) == token"},
	{"whoever releases frees the lock", "release", "local mine = v and string.sub(v, 1, #token + 1) == token .. ':'", "local mine = v"},
	{"a place in the queue is not given up", "release", "redis.call('ZREM', KEYS[2], ARGV[2])", "0"},
	{"the next is not told of a hand-over", "release", "tell_next(ms)\n  return", "return"},
	{"the next is not told of a grant by poll", "acquire", "tell_next(ARGV[2])", ""},
	{"the next is not told that the first has left", "release", "rank == 0", "false"},
	{"whoever stands anywhere tells the first", "release", "v and rank == 0", "v"},
	{"the queue's type is not checked first", "acquire", "redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')", "{}"},
	{"a free lock is left to the queue", "release", "if not mine and redis.call('EXISTS', KEYS[2]) == 0 then", "if not mine then"},
	{"one that tries barges past the queue", "acquire", "redis.call('EXISTS', KEYS[1], KEYS[2])", "redis.call('EXISTS', KEYS[1])"},
	{"the queue never ends", "acquire", "redis.call('PEXPIRE', KEYS[2], 900000)", ""},
	{"a dead waiter too many is dropped", "acquire", "for _ = 1, 1000 do", "for _ = 1, 1001 do"},
	{"whoever lets go frees the lock", "let_go", "if string.sub(v, 1, #token + 1) ~= token .. ':' then", "if false then"},
	{"who lets go keeps the lock", "let_go", "redis.call('DEL', KEYS[1])", ""},
	{"the rest does not last", "release", "'PX', rest)", "'PX', 1)"},
	{"a guarded call runs twice", "guard", "'1', 'NX', 'PX', 60000", "'1', 'PX', 60000"},
	{"a guarded call runs without the lock", "guard", "if not left then", "if not v then"},
	{"a guarded call is forgotten too soon", "guard", "60000", "6000"},
	{"inspect shows all when it shall show none", "inspect", "'-inf', '+inf', 'BYSCORE', 'LIMIT', 0, most", "0, tonumber(most) - 1"},
	{"a renewal makes a lock anew", "renew", "if not v then", "if not v then redis.call('SET', KEYS[1], token .. ':1', 'PX', 1000)"},

	{"a renewal raises what was broken", "renew", "string.find(v, '!', #token + 1, true)", "false"},
	{"who is asked holds nothing any more", "renew", "'broken', string.match", "'other', string.match"},
	{"acquiring again raises what was broken", "acquire", " and not string.find(v, '!', #token + 1, true)", ""},
	{"what was broken is passed on", "resume", "string.find(v, '!', #(again and new or old) + 1, true)", "false"},
	{"what was broken rests", "release", "if mine and rest ~= '0' and string.find", "if false and string.find"},
	{"whoever holds is broken", "break", "not ours and v ~= token", "false"},
	{"a token that begins like the holder's is broken", "break", "string.sub(v, 1, #token + 1) == token .. ':'", "string.sub(v, 1, #token) == token"},
	{"the beginning of a foreign value is enough", "break", "v ~= token", "string.sub(v, 1, #token) ~= token"},
	{"a foreign value is broken for another that begins it", "break", "known and v and string.sub", "v and string.sub"},
	{"what was taken is taken from the next too", "break", "if known and not ours and ARGV[2] == 'now' and", "if false and"},
	{"who was taken from is taken from when it holds again", "break", "known and not ours and ARGV[2]", "known and ARGV[2]"},
	{"asking is answered by an old taking", "break", "not ours and ARGV[2] == 'now' and", "not ours and"},
	{"a lock that rests is asked", "break", "string.sub(token, 1, 3) ~= 'z1/'", "false"},
	{"a foreign holder is asked", "break", "not ours or string.sub", "string.sub"},
	{"the last who asks is remembered", "break", "if not string.find(v, '!', #token + 1, true) then", "if true then"},
	{"asking takes the limit away", "break", "v, 'KEEPTTL')", "v)"},
	{"asking raises or shortens", "break", "v, 'KEEPTTL')", "v, 'PX', 15000)"},
	{"who is asked has a lock without a limit for ever", "break", "if pttl < 0 then", "if false then"},
	{"who is asked is not told", "break", "if ARGV[4] ~= '' then\n    redis.pcall", "if false then\n    redis.pcall"},
	{"from whom it is taken is not told", "break", "if ARGV[4] ~= '' then\n  redis.pcall", "if false then\n  redis.pcall"},
	{"what is taken is not handed over", "break", "local who, value = hand_over(now)", "local who, value = 'nobody', nil"},
	{"what was handed over is deleted", "break", "if who ~= 'other' then", "if true then"},
	{"what is taken stays", "break", "redis.call('DEL', KEYS[1])", ""},
	{"nobody remembers what was taken", "break", "if ours then\n  redis.call('SET', KEYS[5]", "if false then\n  redis.call('SET', KEYS[5]"},
	{"who was foreign is remembered", "break", "if ours then\n  redis.call('SET', KEYS[5]", "if true then\n  redis.call('SET', KEYS[5]"},
	{"what was taken is remembered for ever", "break", ", 'PX', pttl < 0 and 86400000 or math.max(pttl, 60000))", ")"},
	{"what was taken is forgotten before the holder asks", "break", "math.max(pttl, 60000)", "math.min(pttl, 60000)"},
	{"the queue's type is not checked before a break", "break", "redis.call('ZCARD', KEYS[2])", ""},
	{"what was broken is not shown", "inspect", "broken or ''", "''"},
	{"more permits than there are", "sem_acquire", "taken < limit and", "taken <= limit and"},
	{"what was set for all is ignored", "sem_acquire", "tonumber(string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$') or ARGV[6])", "tonumber(ARGV[6])"},
	{"what was set for all is ignored by a release", "sem_release", "tonumber(string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$') or ARGV[3])", "tonumber(ARGV[3])"},
	{"what the caller says is ignored", "sem_release", "or ARGV[3])", "or 1)"},
	{"what is no number is a limit", "sem_acquire", "string.match(redis.call('GETEX', KEYS[4]) or '', '^[1-9]%d*$')", "tonumber(redis.call('GETEX', KEYS[4]) or '')"},
	{"permits that have ended count", "sem_acquire", "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))", ""},
	{"a permit ends a ms too late", "sem_acquire", "'-inf', string.format('%.0f', ms)", "'-inf', string.format('(%.0f', ms)"},
	{"a permit ends a ms too soon", "sem_renew", "'-inf', string.format('%.0f', ms)", "'-inf', string.format('%.0f', ms + 1)"},
	{"a second permit for one token", "sem_acquire", "if mine or taken", "if taken"},
	{"who holds a permit counts twice", "sem_acquire", "mine and taken or taken + 1", "taken + 1"},
	{"one that tries barges past the waiters", "sem_acquire", "taken < limit and not tail[1]", "taken < limit"},
	{"asking again shortens a permit", "sem_acquire", "math.max(tonumber(mine or 0), ms + ttl)", "ms + ttl"},
	{"the semaphore ends before a permit that was raised", "sem_acquire", "redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]))", ""},
	{"the semaphore ends with the permit that was given last", "sem_acquire", "redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]", "ends"},
	{"the semaphore ends before a permit that was handed over", "sem_release", "      keep()\n", ""},
	{"a permit that was handed over cuts the others short", "sem_release", "'ZRANGE', KEYS[1], -1, -1", "'ZRANGE', KEYS[1], 0, 0"},
	{"the semaphore ends before a permit that was renewed", "sem_renew", "'ZRANGE', KEYS[2], -1, -1", "'ZRANGE', KEYS[2], 0, 0"},
	{"no ticket behind the tail of a semaphore", "sem_acquire", "math.max(now, (tonumber(tail[2]) or 0) + 1)", "now"},
	{"an old ticket for a permit is ignored", "sem_acquire", "if ticket == 0 then", "if true then"},
	{"the place in a semaphore's queue is lost by asking again", "sem_acquire", "'ZADD', KEYS[2], 'NX'", "'ZADD', KEYS[2]"},
	{"the queue of a semaphore never ends", "sem_acquire", "redis.call('PEXPIRE', KEYS[2], 900000)", ""},
	{"the queue of a semaphore is not looked at", "sem_acquire", "redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')", "{}"},
	{"one permit too many is handed over", "sem_release", "while given < free do", "while given <= free do"},
	{"one permit at most is handed over", "sem_limit", "while given < free do", "if given < free then"},
	{"the last in a semaphore's queue is served first", "sem_release", "'ZPOPMIN'", "'ZPOPMAX'"},
	{"a dead waiter gets a permit", "sem_release", "if not n.err and n[2] == 0 then", "if false then"},
	{"who waits gets its whole ttl of a permit", "sem_release", "math.min(tonumber(ttl), inbox == '-' and 1000 or 2000)", "tonumber(ttl)"},
	{"the caller gets as little as a head", "sem_acquire", "if who == me then\n      ms, inbox = ttl, '-'", "if who == me then\n      ms, inbox = 2000, '-'"},
	{"an old entry shortens a permit", "sem_release", "'ZADD', KEYS[1], 'NX'", "'ZADD', KEYS[1]"},
	{"an old entry costs a waiter its turn", "sem_limit", "ms), who) == 1 then", "ms), who) >= 0 then"},
	{"who gets a permit is not told", "sem_release", "keep()\n      tell_grant(inbox, who, fence, now, ms)", "keep()"},
	{"the next is not told of a permit that went", "sem_release", "if given > 0 or removed > 0 then", "if removed > 0 then"},
	{"the next is not told that one has left", "sem_release", "if given > 0 or removed > 0 then", "if given > 0 then"},
	{"the next is told of no permit's end", "sem_release", "first and first - math.floor(now / 1000) or 1", "2000"},
	{"whoever tries takes nothing behind the dead", "sem_acquire", "if not got and why == 'nobody' then", "if false then"},
	{"what was given meanwhile is not counted", "sem_acquire", "taken = taken + given", ""},
	{"more dead waiters than a call drops are none", "sem_acquire", "return nil, 'more'", "return nil, 'nobody'"},
	{"who ends last is shown", "sem_acquire", "KEYS[1], 0, 0, 'WITHSCORES')\nlocal left", "KEYS[1], -1, -1, 'WITHSCORES')\nlocal left"},
	{"the fence of a permit is only the clock", "sem_acquire", "string.format('%.0f', last + 1)", "string.format('%.0f', now)"},
	{"releasing what has ended says released", "sem_release", "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', math.floor(now / 1000)))", ""},
	{"whoever releases says released", "sem_release", "redis.call('ZREM', KEYS[1], ARGV[1]) == 1 and", "redis.call('ZREM', KEYS[1], ARGV[1]) >= 0 and"},
	{"the queue's type is not checked before a permit is released", "sem_release", "redis.call('ZCARD', KEYS[2])", "1"},
	{"a free permit is left to the queue", "sem_release", "grant(now, nil, 0, limit - redis.call('ZCARD', KEYS[1]))", "nil, 0"},
	{"a place in a semaphore's queue is not given up", "sem_release", "redis.call('ZREM', KEYS[2], ARGV[2])", "0"},
	{"a renewal shortens a permit", "sem_renew", "ttl > 0 and ends < ms + ttl", "ttl > 0"},
	{"asking raises a permit", "sem_renew", "ttl > 0 and ends < ms + ttl", "ends < ms + ttl or ttl == 0"},
	{"a renewal makes a permit anew", "sem_renew", "if not ends or ends <= ms then", "if not ends or ends <= ms then redis.call('ZADD', KEYS[1], ms + 1000, token)"},
	{"a renewal counts what has ended", "sem_renew", "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', ms))", ""},
	{"0 does not take the limit away", "sem_limit", "redis.call('DEL', KEYS[4])", ""},
	{"0 is a limit", "sem_limit", "if ARGV[1] == '0' then", "if false then"},
	{"reading takes the limit away", "sem_limit", "if ARGV[1] == '0' then", "if ARGV[1] == '0' or ARGV[1] == '' then"},
	{"the limit is not kept", "sem_limit", "redis.call('SET', KEYS[4], ARGV[1])", ""},
	{"new permits are not given", "sem_limit", "tonumber(own) - taken", "0"},
	{"a smaller limit takes permits away", "sem_limit", "own = ARGV[1]", "own = ARGV[1] redis.call('ZREMRANGEBYRANK', KEYS[1], own, -1)"},
	{"what was given by a new limit does not count", "sem_limit", "taken + given}", "taken}"},
	{"a call guarded by a permit runs twice", "sem_guard", "'1', 'NX', 'PX', 60000", "'1', 'PX', 60000"},
	{"a call guarded by a permit runs at its end", "sem_guard", "ends <= ms", "ends < ms"},
	{"a call runs without a permit", "sem_guard", "ends <= ms", "false"},
	{"a guarded call under a permit gets no fence", "sem_guard", "fence)}", "nil)}"},

	{"several locks are taken past the queue of one", "multi_acquire", "redis.call('EXISTS', KEYS[1], KEYS[2])", "redis.call('EXISTS', KEYS[1])"},
	{"of several locks a held one is taken", "multi_acquire", "return v and string.sub(v, 1, #token + 1) == token .. ':' and v or nil", "return v or nil"},
	{"a longer token has several locks too", "multi_acquire", "string.sub(v, 1, #token + 1) == token .. ':'", "string.sub(v, 1, #token) == token"},
	{"some are taken where it was all or none", "multi_acquire", "ARGV[1] == '1' and 0 or i - 1", "i - 1"},
	{"none are taken where it was as many as are free", "multi_acquire", "ARGV[1] == '1' and 0 or i - 1", "0"},
	{"those behind the one in the way are taken", "multi_acquire", "    break\n", ""},
	{"the one in the way is told wrongly", "multi_acquire", "stop, last = i - 2,", "stop, last = i - 3,"},
	{"asking again for several shortens", "multi_acquire", "if pttl < ttl and", "if true and"},
	{"asking again for several does not raise", "multi_acquire", "redis.call('PEXPIRE', KEYS[1], ttl)", ""},
	{"several raise what an operator broke", "multi_acquire", " and not string.find(v, '!', #token + 1, true)", ""},
	{"several have one fence", "multi_acquire", "string.format('%.0f', last + 1)", "string.format('%.0f', last)"},
	{"a lock of several never ends", "multi_acquire", ".. fence, 'PX', ttl)", ".. fence)"},
	{"the fence of several is not checked first", "multi_acquire", "redis.call('GET', KEYS[3])\n    return closed", "return closed"},
	{"the queue of several is not checked first", "multi_acquire", "redis.call('ZCARD', KEYS[2])", ""},
	{"the most that is left of several is told", "multi_acquire", "math.min(least or pttl, pttl)", "math.max(least or pttl, pttl)"},

	{"a client that is gone stays known", "announce", "redis.call('DEL', KEYS[2])", ""},
	{"a client that is gone stays on the list", "announce", "redis.call('ZREM', KEYS[1], ARGV[1])", ""},
	{"clients that crashed stay on the list", "announce", "'(%.0f', now - 1000", "'(%.0f', 0"},
	{"a client is off the list while its text is there", "announce", "'(%.0f', now - 1000", "'(%.0f', now + 1000"},
	{"a client is off the list a moment too soon", "announce", "'(%.0f', now - 1000", "'%.0f', now - 1000"},
	{"the list of clients never ends", "announce", "redis.call('PEXPIRE', KEYS[1], ttl)", ""},
	{"the list ends with the client that spoke last", "announce", "redis.call('PTTL', KEYS[1]) < ttl", "true"},
	{"what a client says never ends", "announce", "ARGV[2], 'PX', ARGV[3]", "ARGV[2]"},
	{"what a client said first counts", "announce", "'ZADD', KEYS[1]", "'ZADD', KEYS[1], 'NX'"},
	{"who lives is taken off the list by who reads it", "roster", "'(%.0f', now - 1000", "'(%.0f', now + 1000"},
	{"who crashed is listed", "roster", "'(%.0f', now - 1000", "'(%.0f', 0"},
	{"old events stay", "note", "'MAXLEN', '=', ARGV[1], ", ""},
	{"about so many events are kept", "note", "'='", "'~'"},
	{"events never end", "note", "redis.call('PEXPIRE', KEYS[1], ARGV[2])", ""},
	{"the first event is not written", "note", "for i = 3", "for i = 4"},
	{"the last event that is known is read again", "events", "'(' .. ARGV[1]", "ARGV[1]"},
	{"every second event is left out", "events", "for n = first, last, step", "for n = first, last, 2 * step"},
	{"the newest comes first", "events", "#list, 1, -1", "1, #list, 1"},
	{"the oldest are shown for the newest", "events", "'XREVRANGE', KEYS[1], '+', '-'", "'XRANGE', KEYS[1], '-', '+'"},
}

func TestMutantsAreSeen(t *testing.T) {
	const enough = 150 // histories
	worlds := make(chan *world, runtime.GOMAXPROCS(0))
	for range cap(worlds) {
		worlds <- newWorld(t)
	}
	for _, m := range slices.Concat(mutants, readMutants, nodeMutants, quorumMutants) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			w := <-worlds
			defer func() { worlds <- w }()
			right := w.sources[m.script]
			defer func() { w.sources[m.script] = right }()
			if !strings.Contains(right, m.old) {
				t.Fatalf("%s.lua has no %q", m.script, m.old)
			}
			w.sources[m.script] = strings.Replace(right, m.old, m.new, 1)
			failed := ""
			for seed := range uint64(enough) {
				_, difference, err := w.history(seed, perHistory)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(difference, "the server replies \"error ERR\"") {
					failed = difference // a script that does not even run would show nothing else
				} else if difference != "" {
					return
				}
			}
			t.Errorf("%d operations did not show it, but for errors: %s", enough*perHistory, failed)
		})
	}
}
