package inspect

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/token"
)

// parseLock reads the reply of the inspect script.
func parseLock(name, key string, reply any) (Lock, error) {
	l := Lock{Name: name, Key: key}
	r := fields{list: asList(reply)}
	value := r.text()
	r.text() // the slot's last fence
	pttl, now := r.num(), r.num()
	l.Waiting = int(r.num())
	r.text() // what was last taken: that holder is gone
	if n := len(r.list) / 3; n > 0 {
		l.Waiters = make([]Waiter, 0, n)
	}
	for r.more() {
		member, ticket, ears := r.text(), r.num(), r.num()
		l.Waiters = append(l.Waiters, parseWaiter(len(l.Waiters)+1, member, ticket, ears, now))
	}
	if r.bad {
		return Lock{}, fmt.Errorf("inspect: lock %q: the server's reply is not one of the script's: %.200q", name, reply)
	}
	if value == "" && pttl == -2 {
		return l, nil
	}
	h, fence := token.ParseValue(value)
	h.Foreign = h.Foreign || value == "" // a key with an empty value is a key
	if h.Foreign {
		l.value = value
	}
	if _, by, why, ok := token.ParseBroken(value); ok && !h.Foreign {
		l.Broken = &BrokenBy{By: by, Why: why}
	}
	l.Held, l.Holder, l.Fence = true, zamok.Holder(h), fence
	l.NoTTL = pttl == -1
	l.Left = millis(pttl)
	if fence > 0 {
		l.Since = since(fence, now)
	}
	return l, nil
}

func parseWaiter(place int, member string, ticket, ears, now int64) Waiter {
	m, ok := token.ParseMember(member)
	if !ok {
		return Waiter{Place: place, Holder: zamok.Holder{Token: member[:min(len(member), 256)], Foreign: true}}
	}
	h, ok := token.Parse(m.Token)
	if !ok {
		h = token.Holder{Token: m.Token, Foreign: true}
	}
	return Waiter{
		Place: place, Holder: zamok.Holder(h), Mode: m.Mode, TTL: millis(m.TTL),
		Waited: since(ticket, now), Alive: ears > 0, Polls: m.Inbox == "-",
	}
}

// since returns the time from one moment of the server's clock to another, in µs.
// The clock may have been set back, a fence may be ahead of it, and anybody can
// write a number: then the answer is not known.
func since(then, now int64) time.Duration {
	if then < 0 || then >= now {
		return 0
	}
	return time.Duration(now-then) * time.Microsecond
}

// millis is a time that the server or a process gives in ms. Anybody can write a
// number: what is none that a Duration holds becomes the nearest.
func millis(ms int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, 0), longest)) * time.Millisecond
}

// fields reads a reply from left to right and remembers whether it was as
// expected.
type fields struct {
	list []any
	bad  bool
}

func (f *fields) more() bool { return len(f.list) > 0 && !f.bad }

func (f *fields) next() any {
	if len(f.list) == 0 {
		f.bad = true
		return nil
	}
	v := f.list[0]
	f.list = f.list[1:]
	return v
}

func (f *fields) text() string {
	s, ok := f.next().(string)
	f.bad = f.bad || !ok
	return s
}

// num takes whole numbers and their decimal text, the form of what may be above
// what a script's number can carry.
func (f *fields) num() int64 {
	switch v := f.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		f.bad = f.bad || err != nil
		return n
	}
	f.bad = true
	return 0
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}
