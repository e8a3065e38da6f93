package diff

import (
	"slices"
	"strconv"
	"strings"
)

// semaphore is one of the operations on semaphores.
func (g *generator) semaphore([]string) op {
	keys := pick(g, semKeys)
	return g.weighted(keys, []kind{
		{32, g.semAcquire}, {34, g.semRelease}, {14, g.semRenew}, {9, g.semLimit}, {9, g.semGuard}, {6, g.semCrowd}, {2, g.semDead}, {10, g.semMarks},
		{6, g.damagePermits}, {2, g.damageSemQueue}, {4, g.damageLimit}, {2, g.damageSemFence}, {2, g.buryPermits},
	})
}

// permitHolder is mostly a token that has a permit.
func (g *generator) permitHolder(keys []string, percent float64) string {
	if all, _ := g.w.model.ZRange(keys[0]); len(all) > 0 && g.chance(percent) {
		return pick(g, all).Member
	}
	return pick(g, tokens)
}

// permitsWanted is what callers say that there are. They mostly agree.
func (g *generator) permitsWanted() string {
	return pick(g, []string{"1", "2", "2", "2", "3", "5"})
}

func (g *generator) semAcquire(keys []string) op {
	token, ttl, inbox, ticket := g.permitHolder(keys, 10), pick(g, ttls), pick(g, inboxes), "0"
	switch {
	case g.chance(40):
		inbox = ""
	case g.chance(20):
		inbox = "-"
	}
	switch {
	case g.ticket[token] != "" && g.chance(10):
		ticket = g.ticket[token]
	case g.chance(3): // one that was given when the clock was ahead
		ticket = strconv.FormatInt(g.w.clock.us+g.Int64N(10_000_000), 10)
	}
	g.member[token] = "p|" + token + "|" + ttl + "|" + inbox
	o := op{name: "sem_acquire", keys: keys[:4], args: []string{token, ttl, inbox, ticket, "p", g.permitsWanted()}}
	if g.chance(24) { // it comes with another inbox, and has two entries then
		again := o
		again.args = slices.Clone(o.args)
		again.args[2] = "-"
		g.planned = append(g.planned, again, op{name: "sem_limit", keys: keys[:4], args: []string{pick(g, []string{"3", "5", ""})}})
	}
	return o
}

func (g *generator) semRelease(keys []string) op {
	token := g.permitHolder(keys, 60)
	member := ""
	switch waiters, _ := g.w.model.ZRange(keys[1]); {
	case len(waiters) > 0 && g.chance(40):
		member = pick(g, waiters).Member
		if parts := strings.Split(member, "|"); len(parts) == 4 && g.chance(80) {
			token = parts[1]
		}
	case g.chance(45):
		member = "x|nobody|5|-"
	}
	return op{name: "sem_release", keys: keys[:4], args: []string{token, member, g.permitsWanted()}}
}

func (g *generator) semRenew(keys []string) op {
	ttl := pick(g, ttls)
	if g.chance(25) {
		ttl = "0"
	}
	return op{name: "sem_renew", keys: []string{keys[0], keys[0], keys[4]}, args: []string{g.permitHolder(keys, 75), ttl}}
}

func (g *generator) semLimit(keys []string) op {
	return op{name: "sem_limit", keys: keys[:4], args: []string{pick(g, []string{"", "", "0", "1", "2", "3", "5", "1000000"})}}
}

func (g *generator) semGuard(keys []string) op {
	what := pick(g, []string{"nil", "list", "list"})
	o := op{name: "sem_guard", keys: []string{keys[0], pick(g, callKeys), userKeys[0], userKeys[1]},
		args: []string{g.permitHolder(keys, 80), strconv.FormatInt(g.w.clock.us, 10), strconv.Itoa(g.IntN(9)), what}}
	if all, _ := g.w.model.ZRange(keys[0]); len(all) > 0 && g.chance(15) { // when a permit ends
		last := all[len(all)-1]
		o.args[0] = last.Member
		o.step = max(0, int64(last.Score)*1000+pick(g, []int64{-1, 0, 999})-g.w.clock.us)
	}
	if g.chance(25) { // a library sends it twice
		g.planned = append(g.planned, o)
	}
	return o
}

// semCrowd is several who come at once, when few permits are left, and then more.
func (g *generator) semCrowd(keys []string) op {
	first := g.semAcquire(keys)
	first.args[2] = ""
	g.planned = append(g.planned, first)
	for range 2 + g.IntN(4) {
		o := g.semAcquire(keys)
		o.args[2] = pick(g, []string{"-", "in:1", "in:2"})
		g.planned = append(g.planned, o)
	}
	limit := op{name: "sem_limit", keys: keys[:4], args: []string{pick(g, []string{"2", "3", "5"})}}
	leaves := op{name: "sem_release", keys: keys[:4], args: []string{first.args[0], "", "1"}}
	g.planned = append(g.planned, pick(g, []op{limit, leaves, leaves}))
	return op{name: "sem_limit", keys: keys[:4], args: []string{"1"}}
}

// semDead is one that finds none in the queue but the dead.
func (g *generator) semDead(keys []string) op {
	o := g.semAcquire(keys)
	o.args[0], o.args[2] = pick(g, []string{"z1/h/9/z/1", "z1/h/9/z/2"}), pick(g, []string{"", "", "-", "in:1"})
	o.args[5] = "5"
	if g.chance(50) {
		g.planned = []op{{name: "del", keys: keys[3:4]}, o}
	} else {
		g.planned = []op{{name: "set", keys: keys[3:4], args: []string{"5"}}, o}
	}
	return op{name: "zadd", keys: keys[1:2], args: []string{"1", "x|z1/h/8/y/1|1500|gone"}}
}

// damagePermits: what strangers and accidents do to the permits.
func (g *generator) damagePermits(keys []string) op {
	key := keys[:1]
	switch g.IntN(8) {
	case 0:
		g.repair(key[0])
		g.planned = append(g.planned, pick(g, []op{g.semAcquire(keys), g.semRelease(keys), g.semRenew(keys), g.semLimit(keys), g.semGuard(keys)}))
		return op{name: "list", keys: key}
	case 1, 2:
		return op{name: "del", keys: key}
	case 3:
		return op{name: "persist", keys: key}
	case 4:
		return op{name: "pexpire", keys: key, args: []string{pick(g, ttls)}}
	}
	// A permit that ends soon, or that no engine gave.
	at := g.w.clock.us/1000 + pick(g, []int64{-5, 0, 1, 2, 700, 4000, 20_000})
	return op{name: "zadd", keys: key, args: []string{strconv.FormatInt(at, 10), pick(g, append([]string{"stranger", ""}, tokens...))}}
}

func (g *generator) damageSemQueue(keys []string) op {
	other := slices.Clone(lockKeys[0])
	other[1] = keys[1]
	o := g.damageQueue(other)
	if o.name == "list" {
		g.planned = append(g.planned, pick(g, []op{g.semAcquire(keys), g.semRelease(keys), g.semLimit(keys)}))
	}
	return o
}

func (g *generator) damageLimit(keys []string) op {
	key := keys[3:4]
	switch g.IntN(3) {
	case 0:
		g.repair(key[0])
		g.planned = append(g.planned, pick(g, []op{g.semAcquire(keys), g.semRelease(keys), g.semLimit(keys)}))
		return op{name: "list", keys: key}
	case 1:
		value := pick(g, []string{"", "x", "-1", "1.5", "0x2", " 2", "2 ", "1e1", "007", "0", "0"})
		g.planned = append(g.planned, pick(g, []op{g.semAcquire(keys), g.semRelease(keys), g.semLimit(keys)}))
		return op{name: pick(g, []string{"set", "setpx"}), keys: key, args: []string{value, "100"}}
	}
	return op{name: "del", keys: key}
}

func (g *generator) damageSemFence(keys []string) op {
	g.repair(keys[2])
	g.planned = append(g.planned, pick(g, []op{g.semAcquire(keys), g.semRelease(keys), g.semLimit(keys)}))
	return op{name: "list", keys: keys[2:3]}
}

// buryPermits is bury for a semaphore.
func (g *generator) buryPermits(keys []string) op {
	next := pick(g, []op{g.semAcquire(keys), g.semAcquire(keys), g.semRelease(keys), {name: "sem_limit", keys: keys[:4], args: []string{"3"}}})
	g.planned = append(g.planned, op{name: "del", keys: keys[:1]}, g.buried(keys), next)
	return op{name: "del", keys: keys[1:2]}
}
