package diff

import (
	"crypto/sha1"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/internal/model"
)

// The keys of a history: two locks and two semaphores of one slot, calls of guarded
// scripts and what these write, clients and what happened.
var (
	lockKeys  = [][]string{{"lock:a", "queue:a", "fence", "readers:a", "broken:a", "marks:a"}, {"lock b", "queue b", "fence", "readers b", "broken b", "marks b"}}
	semKeys   = [][]string{{"semaphore:a", "queue:s", "fence", "limit:s", "marks:s"}, {"semaphore b", "queue t", "fence", "limit t", "marks t"}}
	callKeys  = []string{"call:1", "call:2", "call:3"}
	userKeys  = []string{"number", "seen"}
	procKeys  = []string{"procs", "procs:1", "procs:2", "procs:3"} // the list, and each client's
	eventKeys = []string{"events"}
	nodeKey   = "node"
	dumpKeys  = slices.Concat(lockKeys[0], lockKeys[1][:2], lockKeys[1][3:],
		semKeys[0][:2], semKeys[0][3:], semKeys[1][:2], semKeys[1][3:],
		callKeys, userKeys, procKeys, eventKeys, []string{nodeKey})
	manyLines = 100
)

// dumpScript returns type, what is left, and contents of the keys, and the
// number of all keys, so that none is made that is not among them.
var dumpScript = fmt.Sprintf(`local out = {}
for i, key in ipairs(KEYS) do
  local kind, v = redis.call('TYPE', key).ok, {}
  if kind == 'string' then
    v[1] = redis.call('GET', key)
  elseif kind == 'zset' then
    local m = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #m, 2 do
      v[#v + 1] = m[i] .. ' ' .. string.format('%%.17g', tonumber(m[i + 1]))
    end
  elseif kind == 'hash' then
    local m = redis.call('HGETALL', key)
    for i = 1, #m, 2 do
      v[#v + 1] = m[i] .. ' ' .. m[i + 1]
    end
    table.sort(v)
  elseif kind == 'stream' then
    for _, m in ipairs(redis.call('XRANGE', key, '-', '+')) do
      v[#v + 1] = m[1] .. ' ' .. table.concat(m[2], ' ')
    end
  end
  local text = table.concat(v, '\n')
  if #v > %d then
    text = redis.sha1hex(text)
  end
  out[i] = kind .. ' ' .. redis.call('PTTL', key) .. ' ' .. text
end
out[#out + 1] = #redis.call('KEYS', '*') .. ' keys'
return out`, manyLines)

func (w *world) modelState() []string {
	s := w.model
	s.Begin()
	var out []string
	for _, key := range dumpKeys {
		lines := contents(s, key)
		text := strings.Join(lines, "\n")
		if len(lines) > manyLines {
			text = fmt.Sprintf("%x", sha1.Sum([]byte(text)))
		}
		out = append(out, fmt.Sprintf("%s %d %s", s.Type(key), s.PTTL(key), text))
	}
	return append(out, fmt.Sprintf("%d keys", len(s.Keys())))
}

func contents(s *model.Store, key string) (lines []string) {
	switch s.Type(key) {
	case model.String:
		v, _, _ := s.Get(key)
		return []string{v}
	case model.ZSet:
		all, _ := s.ZRange(key)
		for _, m := range all {
			lines = append(lines, m.Member+" "+score(m.Score))
		}
	case model.Hash:
		all, _ := s.HGetAll(key)
		for field, v := range all {
			lines = append(lines, field+" "+v)
		}
		slices.Sort(lines)
	case model.Stream:
		all, _ := s.XRange(key)
		for _, e := range all {
			lines = append(lines, e.ID()+" "+e.Field+" "+e.Text)
		}
	}
	return lines
}

// score is a number as C prints it with %.17g.
func score(f float64) string {
	if math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+"))
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}
