package inspect

import (
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/token"
)

// Lock is one lock as the server saw it at one moment.
type Lock struct {
	Name string
	Key  string

	// Held: the name is taken, by one of ours, by a foreign program, or by the
	// rest after a holder with MutexConfig.MinHold. See Holder.
	Held   bool
	Holder zamok.Holder
	// Service and Reason are what the holder's client says of itself:
	// Config.Name and MutexConfig.Reason. Empty when nothing is known.
	Service string
	Reason  string
	Fence   int64         // 0 for a foreign holder
	Since   time.Duration // since the grant; 0 when not known
	Left    time.Duration // until it ends if it is not renewed
	NoTTL   bool          // a foreign key that never expires: Left says nothing

	Waiters []Waiter // in order, the first MaxWaiters of them
	Waiting int      // how many in all

	// Err is why List could not read this one, such as a key of another type.
	// Then nothing else is set but Name and Key.
	Err error
}

// MaxWaiters is how many waiters of a lock are listed.
const MaxWaiters = 1000

// Waiter is one who stands in the queue of a lock.
type Waiter struct {
	Place  int // from 1
	Holder zamok.Holder
	Mode   string        // what it waits for; "w" is a Mutex
	TTL    time.Duration // the lease that it asks for
	Waited time.Duration

	// Alive: somebody listens at its inbox. One that does not is passed over
	// when its turn comes. One that polls because it may not subscribe counts as
	// alive: nobody can tell.
	Alive bool
	Polls bool
}

// parseLock reads the reply of the inspect script.
func parseLock(name, key string, reply any) (Lock, error) {
	l := Lock{Name: name, Key: key}
	r := fields{list: asList(reply)}
	value := r.text()
	r.text() // the slot's last fence
	pttl, now := r.num(), r.num()
	l.Waiting = int(r.num())
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
	l.Held, l.Holder, l.Fence = true, zamok.Holder(h), fence
	l.NoTTL = pttl == -1
	l.Left = time.Duration(max(pttl, 0)) * time.Millisecond
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
		Place: place, Holder: zamok.Holder(h), Mode: m.Mode, TTL: time.Duration(m.TTL) * time.Millisecond,
		Waited: since(ticket, now), Alive: ears > 0, Polls: m.Inbox == "-",
	}
}

// since returns the time from one moment of the server's clock to another. The
// clock may have been set back, and a fence may be ahead of it: then the answer
// is not known.
func since(then, now int64) time.Duration {
	return max(0, time.Duration(now-then)*time.Microsecond)
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
		n, err := parseInt(v)
		f.bad = f.bad || err != nil
		return n
	}
	f.bad = true
	return 0
}
