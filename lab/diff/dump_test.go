package diff

import (
	"crypto/sha1"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zamok-go/zamok/internal/model"
)

// The keys of a history: two locks of one slot, calls of guarded scripts, and
// what these write.
var (
	lockKeys  = [][]string{{"lock:a", "queue:a", "fence"}, {"lock b", "queue b", "fence"}}
	callKeys  = []string{"call:1", "call:2", "call:3"}
	userKeys  = []string{"number", "seen", "proc"}
	dumpKeys  = append(append([]string{"lock:a", "queue:a", "lock b", "queue b", "fence"}, callKeys...), userKeys...)
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
		kind := s.Type(key)
		var lines []string
		switch kind {
		case model.String:
			v, _, _ := s.Get(key)
			lines = []string{v}
		case model.ZSet:
			all, _ := s.ZRange(key)
			for _, m := range all {
				lines = append(lines, m.Member+" "+score(m.Score))
			}
		}
		text := strings.Join(lines, "\n")
		if len(lines) > manyLines {
			text = fmt.Sprintf("%x", sha1.Sum([]byte(text)))
		}
		out = append(out, fmt.Sprintf("%s %d %s", kind, s.PTTL(key), text))
	}
	return append(out, fmt.Sprintf("%d keys", len(s.Keys())))
}

// score is a number as C prints it with %.17g.
func score(f float64) string {
	if math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+"))
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}
