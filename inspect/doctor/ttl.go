package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// kinds are the beginnings of the keys that are looked at. All must have a TTL
// but the counters of fences, which must have none. How many permits a semaphore has
// (zamok:limit:) stays until it is set anew.
var kinds = []string{
	"lock:", "semaphore:", "zamok:queue:", "zamok:readers:", "zamok:marks:", "zamok:call:", "zamok:broken:", "zamok:proc:", "zamok:events", "zamok:once:",
	fences,
}

const fences = "zamok:fence:"

// The walk asks for so many keys at a time, which stops the server for about a
// millisecond, and ends by itself after so long or with so many of ours.
const (
	step     = 500
	walkTime = 2 * time.Second
	walkOurs = 10_000
)

const (
	batch      = 256  // keys that are asked about in one pipeline
	mostFences = 1000 // that are asked about; there can be as many as slots
)

var (
	pttl  = driver.NewScript("doctor-pttl", "return redis.call('PTTL', KEYS[1])")
	fence = driver.NewScript("doctor-fence", `local t = redis.call('TIME')
return {redis.call('GET', KEYS[1]) or '0', string.format('%.0f', t[1] * 1000000 + t[2])}`)
)

// tryKeys walks over keys and looks for those that should end and never do, and
// for fences that are ahead of the clock.
func (e *exam) tryKeys(ctx context.Context) error {
	ours, whole, refused, err := e.walk(ctx)
	if err != nil {
		return err
	}
	if refused != "" {
		e.add(Finding{
			Check: "keys", Severity: Note, Found: "SCAN is refused: " + refused,
			Reason: "Keys that have no TTL and should were not looked for.", Remedy: instead(refused, "+scan"),
		})
		return nil
	}
	var should, counters []string
	for _, key := range ours {
		if strings.HasPrefix(key, e.conf.Prefix+fences) {
			counters = append(counters, key)
		} else {
			should = append(should, key)
		}
	}
	endless, asked := e.endless(ctx, should)
	e.add(e.judgeKeys(asked, endless, whole && asked == len(should))...)
	e.add(e.judgeFences(ctx, counters)...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// walk returns our keys and whether it has seen the whole database.
func (e *exam) walk(ctx context.Context) (ours []string, whole bool, refused string, err error) {
	match := pattern(e.conf.Prefix) + "[lsz]*"
	began, looked := time.Now(), 0
	for cursor := "0"; ; looked += step {
		bounded := e.conf.Keys > 0 && (looked >= e.conf.Keys || time.Since(began) > walkTime || len(ours) >= walkOurs)
		if bounded {
			return ours, false, "", nil
		}
		reply, refused, err := e.ask(ctx, "SCAN", cursor, "MATCH", match, "COUNT", strconv.Itoa(step))
		if err != nil || refused != "" {
			return nil, false, refused, err
		}
		page, _ := reply.([]any)
		if len(page) != 2 {
			return nil, false, "", fmt.Errorf("doctor: SCAN was answered with %.200q", reply)
		}
		for _, key := range texts(page[1]) {
			rest, ok := strings.CutPrefix(key, e.conf.Prefix)
			if ok && slices.ContainsFunc(kinds, func(start string) bool { return strings.HasPrefix(rest, start) }) {
				ours = append(ours, key)
			}
		}
		if cursor = fmt.Sprint(page[0]); cursor == "0" {
			slices.Sort(ours)
			return slices.Compact(ours), true, "", nil // SCAN may tell a key several times
		}
	}
}

// endless returns those of the keys that have no TTL, and how many could be
// asked.
func (e *exam) endless(ctx context.Context, keys []string) (endless []string, asked int) {
	for i, r := range e.evalEach(ctx, pttl, keys) {
		if r.Err == nil {
			asked++
		}
		if r.Reply == int64(-1) {
			endless = append(endless, keys[i])
		}
	}
	return endless, asked
}

func (e *exam) evalEach(ctx context.Context, script *driver.Script, keys []string) []driver.Result {
	var out []driver.Result
	for part := range slices.Chunk(keys, batch) {
		var calls []driver.Call
		for _, key := range part {
			calls = append(calls, driver.Call{Script: script, Keys: []string{key}, Limit: limit})
		}
		out = append(out, e.d.EvalAll(ctx, calls)...)
	}
	return out
}

func (e *exam) judgeKeys(should int, endless []string, whole bool) []Finding {
	var locks, helpers []string
	for _, key := range endless {
		if name, ok := strings.CutPrefix(key, e.conf.Prefix+"lock:"); ok {
			locks = append(locks, name)
		} else {
			helpers = append(helpers, key)
		}
	}
	var out []Finding
	if len(locks) > 0 {
		out = append(out, Finding{
			Check: "keys", Severity: Warning, Found: "locks without a TTL: " + some(locks),
			Reason: "They never end by themselves. If the program that took one has crashed, nobody ever gets it again.",
			Remedy: "See whose it is (zamok show NAME), and delete the key if nobody's. zamok itself takes no lock without a TTL.",
		})
	}
	if len(helpers) > 0 {
		out = append(out, Finding{
			Check: "keys", Severity: Note, Found: "keys of zamok without a TTL: " + some(helpers),
			Reason: "Something took it away: PERSIST, or a tool that copied keys. They stay for ever.", Remedy: "Delete them when nobody uses zamok, or give them one with PEXPIRE.",
		})
	}
	found := "none of zamok that should have a TTL"
	if should > 0 {
		found = fmt.Sprintf("%d of zamok should have a TTL, and %d have", should, should-len(endless))
	}
	if !whole {
		found += "; not all keys were looked at: zamok doctor --scan does"
	}
	if len(out) == 0 || !whole {
		out = append(out, Finding{Check: "keys", Severity: OK, Found: found})
	}
	return out
}

// some names the first of a list.
func some(names []string) string {
	const most = 3
	var quoted []string
	for _, name := range names[:min(most, len(names))] {
		quoted = append(quoted, fmt.Sprintf("%.100q", name))
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// judgeFences: a fence is the server's time in µs, or one more than the last. One
// that is a second ahead of the server's clock was given out when it showed more.
func (e *exam) judgeFences(ctx context.Context, counters []string) []Finding {
	var most time.Duration
	for _, r := range e.evalEach(ctx, fence, counters[:min(len(counters), mostFences)]) {
		if pair := texts(r.Reply); len(pair) == 2 {
			last, _ := strconv.ParseInt(pair[0], 10, 64)
			now, _ := strconv.ParseInt(pair[1], 10, 64)
			most = max(most, time.Duration(last-now)*time.Microsecond)
		}
	}
	if most < time.Second {
		return nil
	}
	return []Finding{{
		Check: "clock", Severity: Warning, Found: fmt.Sprintf("fences were given out %v ahead of what the server's clock shows now", short(most)),
		Reason: "The clock was set back, or is that of another primary after a failover. Leases from before end late by as much, and fences are counted until the clock has caught up.",
		Remedy: "Slew clocks (chrony, ntpd -x), never step them, on all nodes alike.",
	}}
}
