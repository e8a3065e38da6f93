package diff

import (
	"fmt"
	"strconv"
)

// quorum is one of the operations on one member of a quorum.
func (g *generator) quorum([]string) op {
	keys := pick(g, lockKeys)
	return g.weighted(keys, []kind{
		{30, g.vote}, {30, g.confirm}, {20, g.line}, {20, g.leave}, {10, g.votes}, {3, g.deadFirst}, {2, g.buryLine}, {4, g.firstLeaves},
	})
}

// opened is what an operation finds on a member that is in no quarantine.
func (g *generator) opened(o op) op {
	g.planned = append(g.planned, o)
	return op{name: "set", keys: []string{nodeKey}, args: []string{fmt.Sprintf("%s %d %s", g.w.run, g.w.clock.us/1000-1, terms)}}
}

func (g *generator) voteOf(keys []string, token, ttl, terms string) op {
	proposed := "0"
	if g.chance(60) {
		proposed = strconv.FormatInt(g.w.clock.us+pick(g, []int64{-1, 0, 1, 5000, 999_999, 1_000_000, 1_000_001}), 10)
	}
	return op{name: "vote", keys: []string{keys[0], keys[1], keys[2], nodeKey}, args: []string{token, ttl, terms, proposed}}
}

func (g *generator) vote(keys []string) op {
	o := g.voteOf(keys, g.token(keys, 40), pick(g, ttls), terms)
	switch n := g.IntN(100); {
	case n < 3:
		o.args[2] = otherTerms
	case n < 35:
		if g.chance(50) {
			g.planned = append(g.planned, op{name: "del", keys: keys[:1]})
		}
		return g.opened(o)
	case n < 45: // an operator broke it
		first := g.opened(o)
		g.planned = append([]op{g.broken(keys, o.args[0])}, g.planned...)
		return first
	}
	return o
}

// broken is a lock that an operator asked for.
func (g *generator) broken(keys []string, token string) op {
	return op{name: "setpx", keys: keys[:1], args: []string{token + pick(g, []string{":7!bob!stuck", ":7!", ":x!b", ":7!b:8"}), pick(g, ttls)}}
}

// votes is the life of a lease at one member.
func (g *generator) votes(keys []string) op {
	token := pick(g, tokens)
	vote, confirm, leave := g.voteOf(keys, token, pick(g, ttls), terms), g.confirm(keys), g.leave(keys)
	confirm.args[0], leave.args[0] = token, token
	first := g.opened(vote)
	again := g.voteOf(keys, token, pick(g, ttls), terms) // its reply was lost
	g.planned = append([]op{{name: "del", keys: keys[:1]}}, append(g.planned, again)...)
	if g.chance(10) {
		g.planned = append(g.planned, op{name: "set", keys: keys[2:3], args: []string{pick(g, []string{"9007199254740990", "9007199254740991", "9007199254740992"})}})
	}
	g.planned = append(g.planned, confirm, leave)
	return first
}

func (g *generator) confirm(keys []string) op {
	fence := g.w.clock.us + pick(g, []int64{-1_000_000, -1, 0, 1, 1_000_000})
	if v, ok, _ := g.w.model.Get(keys[2]); ok && g.chance(50) && len(v) < 17 && onlyDigits(v) {
		fence = max(1, int64(atoi(v))+pick(g, []int64{-1, 0, 1}))
	}
	last := fence
	if g.chance(30) {
		last += 4095
	}
	o := op{name: "confirm", keys: keys[:3], args: []string{g.token(keys, 75), strconv.FormatInt(fence, 10), strconv.FormatInt(last, 10), g.entry(keys)}}
	if g.chance(10) {
		g.planned = append(g.planned, o)
		return g.broken(keys, o.args[0])
	}
	return o
}

// entry is one in the queue, mostly.
func (g *generator) entry(keys []string) string {
	switch waiters, _ := g.w.model.ZRange(keys[1]); {
	case len(waiters) > 0 && g.chance(50):
		return pick(g, waiters).Member
	case g.chance(70):
		return ""
	}
	return "x|nobody|5|-"
}

func (g *generator) line(keys []string) op {
	o := g.asks("line", keys, g.token(keys, 10), pick(g, []string{"w", "w", "W"}))
	if o.args[2] == "" {
		o.args[2] = "-" // who does not wait has no place
	}
	o.keys = keys[:2]
	if g.chance(20) {
		g.planned = append(g.planned, o)
		return op{name: "del", keys: keys[:1]}
	}
	return o
}

func (g *generator) leave(keys []string) op {
	return op{name: "leave", keys: keys[:2], args: []string{g.token(keys, 60), g.entry(keys), pick(g, []string{"0", "0", "1"})}}
}

// deadFirst has some who went away stand before those who come or are told.
func (g *generator) deadFirst(keys []string) op {
	tell := g.leave(keys)
	tell.args[2] = "1"
	g.planned = append(g.planned,
		op{name: "zadd", keys: keys[1:2], args: []string{"2", "w|z1/h/8/y/1|1500|" + pick(g, []string{"gone", "-", "in:1"})}},
		pick(g, []op{tell, g.line(keys)}))
	return op{name: "zadd", keys: keys[1:2], args: []string{"1", "w|z1/h/8/y/2|1500|gone"}}
}

// firstLeaves has one of two who wait give its place up.
func (g *generator) firstLeaves(keys []string) op {
	first := "w|z1/h/8/y/1|1500|in:1"
	leave := g.leave(keys)
	leave.args[1], leave.args[2] = first, "0"
	g.planned = append(g.planned,
		op{name: "zadd", keys: keys[1:2], args: []string{"2", "w|z1/h/8/y/2|1500|" + pick(g, []string{"gone", "-", "in:1", "in:2"})}},
		leave)
	return op{name: "zadd", keys: keys[1:2], args: []string{"1", first}}
}

// buryLine has about as many of them as one call drops.
func (g *generator) buryLine(keys []string) op {
	tell := g.leave(keys)
	tell.args[2] = "1"
	g.planned = append(g.planned, g.buried(keys), pick(g, []op{tell, g.line(keys)}))
	return op{name: "del", keys: keys[1:2]}
}
