package diff

import "strconv"

// What strangers and accidents do to the keys of a lock. Damage that stops every
// operation is repaired after a while, or nothing else would be tried.

func (g *generator) repair(key string) {
	g.repairs = append(g.repairs, op{name: "del", keys: []string{key}})
}

func (g *generator) damageLock(keys []string) op {
	lock := keys[:1]
	token := g.token(keys, 50)
	switch g.IntN(11) {
	case 0:
		if g.chance(45) { // and it is released at once
			g.planned = append(g.planned, op{name: "release", keys: keys[:4], args: []string{token, "", pick(g, ttls)}})
			return op{name: "setpx", keys: lock, args: []string{token + ":", "15000"}}
		}
		g.repair(lock[0])
		return op{name: "list", keys: lock}
	case 1: // held by a stranger without a limit
		g.repair(lock[0])
		value := pick(g, strangers)
		if g.chance(50) {
			g.planned = append(g.planned, op{name: "break", keys: keys[:5], args: []string{value, "now", "eve!stuck", ""}})
		}
		return op{name: "set", keys: lock, args: []string{value}}
	case 2: // by a stranger whose value is like ours
		return op{name: "setpx", keys: lock, args: []string{pick(g, strangers), pick(g, ttls)}}
	case 3, 4: // ours, but somebody broke what is behind the token
		rest := pick(g, []string{":", ":x", "::", ":x:7", ":7:mark", ":12x:8", "", ":-5", "!:5", ":7:a!b", ":!", ":7!", ":x!b"})
		if g.chance(60) {
			g.planned = append(g.planned, pick(g, []op{
				{name: "renew", keys: keys[:1], args: []string{token, pick(g, ttls)}},
				{name: "release", keys: keys[:4], args: []string{token, "", pick(g, ttls)}},
				{name: "acquire", keys: keys[:4], args: []string{token, pick(g, ttls), "", "0", "w"}},
			}))
		}
		return op{name: "setpx", keys: lock, args: []string{token + rest, pick(g, ttls)}}
	case 5:
		return op{name: "persist", keys: lock}
	case 6:
		return op{name: "pexpire", keys: lock, args: []string{pick(g, ttls)}}
	case 7: // its last day was long ago
		return op{name: "pexpire", keys: lock, args: []string{"-5"}}
	case 8: // somebody took its limit, perhaps when an operator had asked for it
		ask := op{name: "break", keys: keys[:5], args: []string{token, "ask", "eve!stuck", pick(g, inboxes)}}
		g.planned = append(g.planned, ask)
		return op{name: "set", keys: lock, args: []string{token + pick(g, []string{":7", ":7!bob!before", ":x"})}}
	}
	return op{name: "del", keys: lock}
}

func (g *generator) damageQueue(keys []string) op {
	queue := keys[1:2]
	switch g.IntN(8) {
	case 0:
		g.repair(queue[0])
		if g.chance(40) {
			g.planned = append(g.planned, op{name: "downgrade", keys: keys[:4], args: []string{g.token(keys, 100), "1500"}})
		}
		return op{name: "list", keys: queue}
	case 1:
		return op{name: "del", keys: queue}
	case 2:
		return op{name: "persist", keys: queue}
	case 3, 6, 7: // of another version, or nobody's
		g.planned = append(g.planned, op{name: "inspect", keys: keys[:5], args: []string{"100"}})
		member := pick(g, []string{"", "|", "||", "|||", "x|y|z|-", "x||5|-", "x|t|5|in:1", "r|t|5|-", "r||5|in:1", "r|t|0|-", "x|t|5|", "x|t|99999999999999999999999|in:2",
			"x|t|0|-", "x|t|0007|in:3", "x|t|5|a|b", "x|t| 5|in:1", "x\n|t|1500|in:1", "x|a:b|1500|in:2"})
		return op{name: "zadd", keys: queue, args: []string{pick(g, []string{"1", "0.5", "-3"}), member}}
	case 4: // a clock was far ahead, or something else
		at := pick(g, []string{"9007199254740993", "2.5", "-1e20", "inf", "-inf", "1800000000000000", "1800000100000000.7"})
		return op{name: "zadd", keys: queue, args: []string{at, pick(g, []string{"w|", "W|", "r|"}) + pick(g, tokens) + "|1500|" + pick(g, inboxes)}}
	}
	return op{name: "pexpire", keys: queue, args: []string{pick(g, ttls)}}
}

func (g *generator) damageFence(keys []string) op {
	fence := keys[2:3]
	now := g.w.clock.us
	switch g.IntN(5) {
	case 0, 1:
		g.repair(fence[0])
		token := g.token(keys, 50)
		o := g.resume(keys)
		o.args[0] = token
		g.planned = append(g.planned, op{name: "list", keys: fence}, o)
		return op{name: "setpx", keys: keys[:1], args: []string{token + ":7", "15000"}}
	case 2:
		return op{name: "del", keys: fence}
	case 3:
		limits := []string{"9007199254740989", "9007199254740990", "9007199254740991", "9007199254740992"}
		if g.chance(50) { // somebody waits, so that the release has to read it
			waits := g.asks("acquire", keys, pick(g, tokens), "w")
			waits.args[2] = "-"
			g.member[waits.args[0]] = "w|" + waits.args[0] + "|" + waits.args[1] + "|-"
			token := g.token(keys, 50)
			g.planned = append(g.planned, waits, op{name: "set", keys: fence, args: []string{pick(g, limits)}},
				op{name: "release", keys: keys[:4], args: []string{token, "", "0"}})
			return op{name: "setpx", keys: keys[:1], args: []string{token + ":7", "15000"}}
		}
		return op{name: "set", keys: fence, args: []string{pick(g, append(limits, "", "x", "-1", "1.5", "1e3", "0x10", " 7", "7 ",
			"99999999999999999999999999", "007"))}}
	}
	ahead := pick(g, []int64{-1, 0, 1, 2, 1_000_000, 100_000_000})
	return op{name: "setpx", keys: fence, args: []string{strconv.FormatInt(now+ahead, 10), pick(g, ttls)}}
}

// damageCall: the keys of guarded calls, and what the caller's script writes.
func (g *generator) damageCall(keys []string) op {
	if g.chance(50) {
		return op{name: "del", keys: []string{pick(g, callKeys)}}
	}
	g.repair(userKeys[0])
	permits := pick(g, semKeys)
	first, second := g.guard(keys), g.semGuard(permits)
	first.keys[1], second.keys[1] = callKeys[0], callKeys[1]
	second.args[0] = g.permitHolder(permits, 95)
	g.planned = append(g.planned, op{name: "del", keys: callKeys[:1]}, first, op{name: "del", keys: callKeys[1:2]}, second)
	return pick(g, []op{
		{name: "list", keys: userKeys[:1]},
		{name: "set", keys: userKeys[:1], args: []string{"9007199254740000"}},
		{name: "set", keys: userKeys[:1], args: []string{"x"}},
	})
}
