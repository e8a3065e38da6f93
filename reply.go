package zamok

import (
	"fmt"
	"strconv"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// answer is what every script replies, in the order of its fields; see the
// RETURNS line of each script. A field that a script does not use is zero.
type answer struct {
	status string
	fence  int64
	pttl   time.Duration // negative: the key has no TTL (-1 ms) or is absent (-2 ms)
	time   int64         // server time in µs
	place  int64         // in the queue; for a release, whether it was taken out of it
	ears   int64
	holder string
	extra  any // ticket, or what a guarded script returned

	shared         bool  // several may have it at a time
	permits, inUse int64 // how many: 0 of readers, and how many do
}

// grantedBefore is the place in the answer to one that has what it asks for already.
const grantedBefore = 2

const fieldCount = 7 // without extra, and what is added of what is shared

// answerOf reads what came of a call.
func answerOf(r driver.Result) (answer, error) {
	if r.Err != nil {
		return answer{}, r.Err
	}
	return parseAnswer(r.Reply)
}

func parseAnswer(reply any) (answer, error) {
	f, ok := reply.([]any)
	if !ok || len(f) < fieldCount {
		return answer{}, badReply(reply)
	}
	var a answer
	var fence string
	var ms int64
	ok = true
	ok = set(&a.status, f[0]) && ok
	ok = set(&fence, f[1]) && ok
	ok = set(&ms, f[2]) && ok
	ok = set(&a.time, f[3]) && ok
	ok = set(&a.place, f[4]) && ok
	ok = set(&a.ears, f[5]) && ok
	ok = set(&a.holder, f[6]) && ok
	if !ok {
		return answer{}, badReply(reply)
	}
	var err error
	if a.fence, err = strconv.ParseInt(fence, 10, 64); err != nil {
		return answer{}, badReply(reply)
	}
	a.pttl = time.Duration(ms) * time.Millisecond
	if len(f) > fieldCount {
		a.extra = f[fieldCount]
	}
	// A guarded script may return several values, of which the first counts.
	if n := len(f); n > fieldCount+1 && a.status != "ran" {
		a.shared = set(&a.permits, f[n-2]) && set(&a.inUse, f[n-1])
		if !a.shared {
			return answer{}, badReply(reply)
		}
	}
	return a, nil
}

func set[T any](to *T, v any) bool {
	x, ok := v.(T)
	*to = x
	return ok
}

func badReply(reply any) error {
	return fmt.Errorf("zamok: the server sent a reply that no script of zamok gives: %.100v", reply)
}

// held turns an answer that names another holder into the error that says so. Of
// several it names one: the first whose lease ends.
func (a answer) held(name string) *HeldError {
	if a.holder == closedHolder {
		return &HeldError{Name: name, TTL: a.pttl, Quarantine: true}
	}
	if a.shared {
		h, _ := parseToken(a.holder)
		e := &HeldError{Name: name, Holder: h, TTL: max(a.pttl, 0), NoTTL: a.pttl == -time.Millisecond, Permits: int(a.permits), InUse: int(a.inUse)}
		if e.Permits == 0 {
			e.Readers, e.InUse = e.InUse, 0
			e.Holder.Readers = e.Readers == 0 // their leases ended just now
		}
		return e
	}
	h, fence := parseValue(a.holder)
	h.Foreign = h.Foreign || a.holder == "" // a key with an empty value is a key
	e := &HeldError{Name: name, Holder: h, Fence: fence, TTL: max(a.pttl, 0), NoTTL: a.pttl == -time.Millisecond}
	// A fence is the server's time of the grant, unless grants came faster than
	// its clock, so it also says since when.
	if fence > 0 && a.time > fence {
		e.Since = time.Duration(a.time-fence) * time.Microsecond
	}
	return e
}
