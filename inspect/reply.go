package inspect

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/token"
)

// read takes in the reply of a script.
func (l *Lock) read(script *driver.Script, reply any) error {
	r := fields{list: asList(reply)}
	if script == lua.Inspect {
		l.readLock(&r)
	} else {
		l.readRoll(&r)
	}
	if r.bad {
		return fmt.Errorf("the server's reply is not one of the script's: %.200q", reply)
	}
	return nil
}

// readLock reads the reply of the inspect script.
func (l *Lock) readLock(r *fields) {
	*l = Lock{Kind: KindLock, Name: l.Name, Key: l.Key}
	value := r.text()
	r.text() // the slot's last fence
	pttl := r.num()
	l.now = r.num()
	l.Waiting = int(r.num())
	r.text() // what was last taken: that holder is gone
	l.readWaiters(r)
	if value == "" && pttl == -2 {
		return
	}
	l.Held, l.NoTTL, l.Left = true, pttl == -1, millis(pttl)
	h, fence := token.ParseValue(value)
	if h.Readers {
		l.Kind = KindReadLock
		return
	}
	h.Foreign = h.Foreign || value == "" // a key with an empty value is a key
	if h.Foreign {
		l.value = value
	}
	holder := Holder{Holder: zamok.Holder(h), Fence: fence, Left: l.Left}
	if fence > 0 {
		holder.Since = since(fence, l.now)
	}
	if !h.Foreign {
		holder.Broken = brokenBy(value)
	}
	l.Holders, l.Holding = []Holder{holder}, 1
}

// readRoll reads the reply of the roll script: all of a semaphore, or who reads.
func (l *Lock) readRoll(r *fields) {
	limit := int(r.num())
	r.text() // the slot's last fence
	r.num()  // the TTL of the list, of which each member has its own end
	l.now = r.num()
	waiting := int(r.num())
	l.Holding = int(r.num())
	l.Holders = make([]Holder, 0, min(max(l.Holding, 0), MaxHolders))
	left := time.Duration(0)
	for n := r.num(); n > 0 && r.more(); n-- {
		h := Holder{Holder: holderOf(r.text())}
		h.Left = millis(r.num() - l.now/1000)
		h.Broken = brokenBy(r.text())
		left = max(left, h.Left)
		l.Holders = append(l.Holders, h)
	}
	if l.Kind != KindSemaphore {
		return
	}
	l.Held, l.Left = l.Holding > 0, left
	l.Permits, l.Fixed = limit, limit > 0
	l.Waiting = waiting
	l.readWaiters(r)
}

func (l *Lock) readWaiters(r *fields) {
	if n := len(r.list) / 3; n > 0 {
		l.Waiters = make([]Waiter, 0, n)
	}
	for r.more() {
		member, ticket, ears := r.text(), r.num(), r.num()
		l.Waiters = append(l.Waiters, parseWaiter(len(l.Waiters)+1, member, ticket, ears, l.now))
	}
}

// brokenBy reads who asked the holder to end it; nil when nobody did.
func brokenBy(value string) *BrokenBy {
	if _, by, why, ok := token.ParseBroken(value); ok {
		return &BrokenBy{By: by, Why: why}
	}
	return nil
}

func parseWaiter(place int, member string, ticket, ears, now int64) Waiter {
	m, ok := token.ParseMember(member)
	if !ok {
		return Waiter{Place: place, Holder: zamok.Holder{Token: member[:min(len(member), 256)], Foreign: true}}
	}
	return Waiter{
		Place: place, Holder: holderOf(m.Token), Mode: m.Mode, TTL: millis(m.TTL),
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
