package diff

import (
	"slices"
	"strconv"
	"strings"
)

// marker begins the value of a lock that readers have.
const marker = "z1-read:"

// readerKeys are those by which a reader asks for what it has.
func readerKeys(keys []string) []string { return []string{keys[0], keys[3], keys[5]} }

// reading is one of the operations on a lock that some only read under.
func (g *generator) reading([]string) op {
	keys := pick(g, lockKeys)
	return g.weighted(keys, []kind{
		{22, g.readAcquire}, {14, g.readRelease}, {10, g.readRenew}, {7, g.downgrade}, {9, g.crowd}, {4, g.readGuard},
		{9, g.lockMarks}, {4, g.deadWriters}, {5, g.damageReaders}, {3, g.damageMarker}, {1, g.buryReaders},
	})
}

// member0 is one of those whose ends a sorted set has, if there is one.
func (g *generator) member0(key string) string {
	if all, _ := g.w.model.ZRange(key); len(all) > 0 {
		return pick(g, all).Member
	}
	return pick(g, tokens)
}

// reader is mostly a token that reads.
func (g *generator) reader(keys []string, percent float64) string {
	if g.chance(percent) {
		return g.member0(keys[3])
	}
	return pick(g, tokens)
}

func (g *generator) readAcquire(keys []string) op {
	o := g.asks("read_acquire", keys, g.reader(keys, 15), "r")
	if g.chance(8) { // it comes with another inbox, and has two entries then
		again := o
		again.args = slices.Clone(o.args)
		again.args[2] = "-"
		g.planned = append(g.planned, again)
	}
	return o
}

func (g *generator) readRelease(keys []string) op {
	o := g.release(keys)
	o.args[0] = g.reader(keys, 80)
	return o
}

func (g *generator) readRenew(keys []string) op {
	ttl := pick(g, ttls)
	if g.chance(15) {
		ttl = "0"
	}
	return op{name: "renew", keys: readerKeys(keys), args: []string{g.reader(keys, 85), ttl}}
}

func (g *generator) readGuard(keys []string) op {
	o := g.guard(keys)
	o.args[0] = g.reader(keys, 85)
	return o
}

func (g *generator) downgrade(keys []string) op {
	o := op{name: "downgrade", keys: keys[:4], args: []string{g.token(keys, 85), pick(g, ttls)}}
	if g.chance(40) { // its reply was lost, and it comes again at once or when the lease ends
		again := o
		if g.chance(50) {
			o.step = 1
			now := g.w.clock.us + o.step
			end := max(g.w.model.Deadline(keys[0]), now/1000+int64(atoi(o.args[1])))
			again.step = end*1000 + pick(g, []int64{-1, 0, 999, 1000}) - now
		}
		g.planned = append(g.planned, again)
	}
	return o
}

// crowd is readers and writers who come while a writer holds the lock, of whom some
// die, and what becomes of them when it does not hold it any more.
func (g *generator) crowd(keys []string) op {
	first := pick(g, tokens)
	for range 1 + g.IntN(6) {
		name, mode := "read_acquire", "r"
		if g.chance(35) {
			name, mode = "acquire", pick(g, []string{"w", "w", "W"})
		}
		o := g.asks(name, keys, pick(g, tokens), mode)
		o.args[2], o.args[3] = pick(g, []string{"-", "in:1", "in:2", "in:3", "gone"}), "0"
		g.planned = append(g.planned, o)
	}
	last := g.planned[len(g.planned)-1]
	if g.chance(40) { // one that only tries
		last = g.asks("read_acquire", keys, "z1/h/9/z/1", "r")
		last.args[2] = ""
	}
	g.planned = append(g.planned, pick(g, []op{
		{name: "release", keys: keys[:4], args: []string{first, "", "0"}},
		{name: "release", keys: keys[:4], args: []string{first, "", "0"}},
		{name: "downgrade", keys: keys[:4], args: []string{first, "15000"}},
		{name: "break", keys: keys[:5], args: []string{first, "now", "eve!stuck", ""}},
		{name: "del", keys: keys[:1]},
		{name: "del", keys: keys[:1]},
	}), last)
	return op{name: "acquire", keys: keys[:4], args: []string{first, "15000", "", "0", "w"}}
}

// deadWriters stand before a reader who comes while others read.
func (g *generator) deadWriters(keys []string) op {
	comes := g.asks("read_acquire", keys, pick(g, []string{"z1/h/9/z/1", "z1/h/9/z/2"}), "r")
	comes.args[2] = pick(g, []string{"", "-", "in:1"})
	dead := op{name: "zadd", keys: keys[1:2], args: []string{"1", "w|z1/h/8/y/1|1500|gone"}}
	g.planned = append(g.planned, dead, comes)
	if g.chance(30) { // or before one who gives up
		o := g.asks("acquire", keys, pick(g, tokens), "w")
		o.args[2] = "-"
		member := strings.Join([]string{"w", o.args[0], o.args[1], "-"}, "|")
		leaves := op{name: "release", keys: keys[:4], args: []string{o.args[0], member, "0"}}
		waits := g.asks("read_acquire", keys, "z1/h/9/z/3", "r")
		waits.args[2] = "-"
		g.planned = append(g.planned, o, waits, g.asks("acquire", keys, pick(g, tokens), "w"), leaves)
	}
	o := g.readAcquire(keys)
	o.args[2] = ""
	return o
}

// lockMarks and semMarks are what operators do to those who share, and read of them.
func (g *generator) lockMarks(keys []string) op {
	if last, _, _ := g.w.model.Get(keys[4]); last != "" && g.chance(70) { // it was the writer until it was broken
		token, _, _ := strings.Cut(last, ":")
		return op{name: "fate", keys: []string{keys[2], keys[5], keys[4]}, args: []string{pick(g, []string{token, token, token + "1"})}}
	}
	return g.marks(keys[0], keys[3], keys[5], []string{keys[3], keys[1], keys[2], semKeys[0][3], keys[5], keys[4]}, g.readRenew(keys))
}

func (g *generator) semMarks(keys []string) op {
	return g.marks(keys[0], keys[0], keys[4], append(keys[:5:5], lockKeys[0][4]), g.semRenew(keys))
}

func (g *generator) marks(key, members, marks string, all []string, renew op) op {
	token := g.member0(members)
	mark := op{name: "mark", keys: []string{members, marks}, args: []string{token, pick(g, []string{"eve!stuck", "bob!", "!"}), pick(g, append([]string{""}, inboxes...)), key}}
	roll := op{name: "roll", keys: all[:5], args: []string{pick(g, []string{"0", "1", "100", "100", "100"}), pick(g, []string{"0", "1", "100"})}}
	fate := op{name: "fate", keys: []string{all[2], marks, all[5]}, args: []string{pick(g, []string{token, token, pick(g, tokens)})}}
	renew.args[0] = token
	switch g.IntN(12) {
	case 0:
		g.repair(marks)
		g.planned = append(g.planned, pick(g, []op{mark, mark, roll, fate, renew, renew}))
		return op{name: "list", keys: []string{marks}}
	case 1:
		return pick(g, []op{{name: "del", keys: []string{marks}}, {name: "persist", keys: []string{marks}}, {name: "pexpire", keys: []string{marks}, args: []string{pick(g, ttls)}}})
	case 2, 3:
		return roll
	case 4:
		return fate
	}
	if g.chance(30) { // another operator
		again := mark
		again.args = []string{token, "another!one", "", key}
		g.planned = append(g.planned, again)
	}
	g.planned = append(g.planned, pick(g, []op{renew, roll, fate}))
	return mark
}

// damageReaders: what strangers and accidents do to the readers.
func (g *generator) damageReaders(keys []string) op {
	key := keys[3:4]
	switch g.IntN(8) {
	case 0, 1: // of another type, while there are some
		g.repair(key[0])
		after := op{name: "acquire", keys: keys[:4], args: []string{pick(g, tokens), "1500", pick(g, []string{"", "-"}), "0", "w"}}
		g.planned = append(g.planned,
			op{name: "list", keys: key},
			pick(g, []op{after, g.readAcquire(keys), g.readRelease(keys), g.readRenew(keys), g.readGuard(keys), g.downgrade(keys),
				{name: "roll", keys: []string{keys[3], keys[1], keys[2], semKeys[0][3], keys[5]}, args: []string{"1", "1"}},
				{name: "mark", keys: []string{keys[3], keys[5]}, args: []string{pick(g, tokens), "eve!", "", keys[0]}}}))
		return op{name: "setpx", keys: keys[:1], args: []string{marker + "7", "15000"}}
	case 2:
		return op{name: "del", keys: key}
	case 3:
		return op{name: "persist", keys: key}
	case 4:
		return op{name: "pexpire", keys: key, args: []string{pick(g, ttls)}}
	}
	// One whose lease ends soon, or that no engine gave.
	at := g.w.clock.us/1000 + pick(g, []int64{-5, 0, 1, 2, 700, 4000, 20_000})
	return op{name: "zadd", keys: key, args: []string{strconv.FormatInt(at, 10), pick(g, append([]string{"stranger", ""}, tokens...))}}
}

// damageMarker: a value that says that readers have the lock, with readers or without.
func (g *generator) damageMarker(keys []string) op {
	lock := keys[:1]
	after := g.readAcquire(keys)
	if g.chance(50) {
		after = g.acquire(keys)
	}
	g.planned = append(g.planned, after)
	switch value := marker + pick(g, []string{"7", "7", "", "x", "7!eve!stuck"}); g.IntN(5) {
	case 0:
		g.repair(lock[0])
		return op{name: "set", keys: lock, args: []string{value}}
	case 1:
		return op{name: "persist", keys: lock}
	case 2:
		if g.chance(70) {
			renew := op{name: "renew", keys: readerKeys(keys), args: []string{g.member0(keys[3]), "5000"}}
			g.planned = []op{renew}
		}
		return op{name: "pexpire", keys: lock, args: []string{"15000"}}
	default:
		return op{name: "setpx", keys: lock, args: []string{value, pick(g, ttls)}}
	}
}

// buryReaders is bury, under a lock that readers have.
func (g *generator) buryReaders(keys []string) op {
	o := g.readAcquire(keys)
	o.args[2] = ""
	next := g.readAcquire(keys)
	g.planned = []op{{name: "del", keys: keys[1:2]}, o, g.buried(keys), next, next}
	return op{name: "del", keys: keys[:1]}
}
