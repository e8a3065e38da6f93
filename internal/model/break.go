package model

import "strings"

// mark begins what an operator leaves in the value of a lock, behind the fence.
const mark = "!"

const (
	// longestLease is what a lock gets that had no time to live when its holder was
	// asked to end it, in ms: nothing raises it any more, so nothing else would. It
	// must not be less than what the holder was granted, which nobody knows.
	longestLease = 24 * 60 * 60 * 1000

	// leastMemory is the least time for which is known what was taken, in ms.
	leastMemory = 60_000
)

// broken says whether an operator asked the token, which holds, to end it.
func broken(value, token string) bool { return strings.Contains(value[len(token):], mark) }

// breaking is one run of break.
type breaking struct {
	*Store
	names
	broken             string
	token, note, inbox string
	value, fence       string
	left               int64
}

// Break takes a lock from its holder, for an operator: by asking it to stop, or
// at once. It concerns only the holder that the operator saw.
//
// Keys: lock, queue, fence, readers, broken, and with quarantine node. Arguments: token
// (of a foreign holder its value), how (ask or now), note, inbox of the holder ("":
// none), and with quarantine terms. The reply: asked, taken, handed, deaf, absent or other;
// fence, ms left, 0, 0, 0, holder.
func (s *Store) Break(keys, args []string) (any, error) {
	node, terms, ok := quarantined(keys, args, 5, 4)
	if !ok {
		return nil, refuse("ERR break takes 5 keys and 4 arguments")
	}
	s.Begin()
	b := breaking{Store: s, names: namesOf(keys), broken: keys[4], token: args[0], note: args[2], inbox: args[3], fence: "0"}
	value, held, err := s.Get(keys[0])
	if err != nil {
		s.hit(LockWrongType)
		return nil, err
	}
	last, _, err := s.Get(b.broken)
	if err != nil {
		s.hit(BrokenWrongType)
		return nil, err
	}
	if _, err := s.ZRange(keys[1]); err != nil {
		s.hit(QueueWrongType)
		return nil, err
	}
	b.value, b.left = value, s.PTTL(keys[0])
	ours := held && isToken(b.token) && owns(value, b.token)
	if isToken(b.token) && !ours && args[1] == "now" && owns(last, b.token) {
		s.hit(BreakTakenBefore)
		b.fence = fenceOf(last, b.token)
		return b.reply("taken", value), nil
	}
	if !held {
		s.hit(BreakAbsent)
		return absent(), nil
	}
	if !ours && value != b.token || reads(value) {
		s.hit(BreakOther)
		return other(value, b.left), nil
	}
	if ours {
		b.fence = fenceOrZero(value, b.token)
	}
	if b.closed, _, err = s.quarantine(node, terms); err != nil {
		return nil, err
	}
	if args[1] == "ask" {
		return b.ask(ours), nil
	}
	return b.take(ours)
}

// isToken: also the resting lock's owner, who is nobody, has a token. A foreign
// value may be the beginning of another one's, up to a colon.
func isToken(token string) bool {
	return strings.HasPrefix(token, "z1/") || strings.HasPrefix(token, "z1-")
}

// ask leaves the holder what it has and lets it end: by its own release, when it
// reads the mark, or by the end of its lease. The first who asks is remembered.
func (b *breaking) ask(ours bool) any {
	if !ours || !strings.HasPrefix(b.token, "z1/") { // nobody is there to be asked
		b.hit(BreakDeaf)
		return b.reply("deaf", b.value)
	}
	if broken(b.value, b.token) {
		b.hit(BreakAskedBefore)
	} else {
		b.hit(BreakAsked)
		b.value = b.token + ":" + b.fence + mark + b.note
		b.setKeep(b.lock, b.value)
	}
	if b.left < 0 {
		b.hit(BreakAskedWithoutTTL)
		b.left = longestLease
		b.PExpire(b.lock, b.left)
	}
	b.tell()
	return b.reply("asked", b.value)
}

// take hands the lock to the first who waits, as a release does. Why, and by
// whom, the holder learns from the key broken, if there is one who could ask.
func (b *breaking) take(ours bool) (any, error) {
	g, err := b.pass(b.names, "")
	if err != nil {
		return nil, err
	}
	status := "taken"
	if g.to == toOther {
		b.hit(BreakHands)
		status = "handed"
	} else {
		b.hit(BreakTakes)
		b.Del(b.lock)
	}
	if !ours {
		b.hit(BreakTakesForeign)
	} else if err := b.setPX(b.broken, b.token+":"+b.fence+mark+b.note, b.memory()); err != nil {
		return nil, err
	}
	b.tell()
	return b.reply(status, g.value), nil
}

// memory is how long it is known what was taken: as long as the holder may ask.
func (b *breaking) memory() int64 {
	if b.left < 0 {
		return longestLease
	}
	return max(b.left, leastMemory)
}

// tell wakes the holder: the message is a hint, for which it asks the server.
func (b *breaking) tell() {
	if b.inbox == "" {
		b.hit(BreakUntold)
		return
	}
	b.hit(BreakTold)
	b.env.Publish(b.inbox, strings.Join([]string{"break", b.token, b.lock}, " "))
}

func (b *breaking) reply(status, value string) any {
	return []any{status, b.fence, b.left, int64(0), int64(0), int64(0), value}
}
