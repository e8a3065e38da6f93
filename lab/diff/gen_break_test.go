package diff

import "strings"

// strangers are values of foreign holders, of which one is the beginning of
// another.
var strangers = []string{"stranger", "stranger:1:2", "", strings.Repeat("s", 255) + ":", strings.Repeat("s", 255) + ":1", strings.Repeat("s", 300)}

// breaking is break, and what the holder, who does not know yet, does next.
func (g *generator) breaking(keys []string) op {
	token := g.victim(keys)
	how := pick(g, []string{"ask", "ask", "now"})
	note := pick(g, []string{"eve!stuck", "bob!", "!", "eve!a!b: c"})
	inbox := pick(g, append([]string{""}, inboxes...))
	o := op{name: "break", keys: keys[:5], args: []string{token, how, note, inbox}}
	if g.chance(60) {
		g.planned = append(g.planned, g.unaware(keys, token))
	}
	if how == "now" && g.chance(45) { // a library sends it twice
		g.planned = append([]op{o}, g.planned...)
	}
	if g.chance(10) { // another operator
		again := o
		again.args = []string{token, pick(g, []string{"ask", "now"}), "another!one", inbox}
		g.planned = append(g.planned, again)
	}
	return o
}

// victim is whom an operator wants gone: mostly who holds, as it was shown.
func (g *generator) victim(keys []string) string {
	v, held, _ := g.w.model.Get(keys[0])
	switch n := g.Float64() * 100; {
	case held && n < 70 && strings.HasPrefix(v, "z1"):
		token, _, _ := strings.Cut(v, ":")
		return token
	case held && n < 85: // a stranger's value
		return v
	case held && n < 88:
		return v[:min(len(v), pick(g, []int{8, 255}))]
	case n < 93:
		return pick(g, strangers)
	}
	return pick(g, tokens) // it held before, or waits
}

// unaware is what a holder does that was not told.
func (g *generator) unaware(keys []string, token string) op {
	if strings.HasPrefix(token+":", marker) { // which nobody has, and the engine refuses
		token = g.member0(keys[3])
	}
	ttl := pick(g, ttls)
	return pick(g, []op{
		{name: "renew", keys: keys[:1], args: []string{token, ttl}},
		{name: "renew", keys: readerKeys(keys), args: []string{token, "0"}},
		{name: "acquire", keys: keys[:4], args: []string{token, ttl, "", "0", "w"}},
		{name: "downgrade", keys: keys[:4], args: []string{token, ttl}},
		{name: "resume", keys: keys[:4], args: []string{token, pick(g, tokens), ttl}},
		{name: "resume", keys: keys[:4], args: []string{pick(g, tokens), token, ttl}},
		{name: "release", keys: keys[:4], args: []string{token, "", ttl}},
		{name: "release", keys: keys[:4], args: []string{token, "x|nobody|5|-", ttl}},
		{name: "release", keys: keys[:4], args: []string{token, "", "0"}},
		{name: "inspect", keys: keys[:5], args: []string{"1"}},
	})
}

// damageBroken: the key that remembers what was broken.
func (g *generator) damageBroken(keys []string) op {
	key := keys[4:5]
	look := op{name: "inspect", keys: keys[:5], args: []string{"0"}}
	switch g.IntN(5) {
	case 0, 1:
		g.repair(key[0])
		g.planned = append(g.planned, pick(g, []op{look, look, g.breaking(keys)}))
		return op{name: "list", keys: key}
	case 2:
		return op{name: "setpx", keys: key, args: []string{"", pick(g, ttls)}}
	case 3:
		return op{name: "pexpire", keys: key, args: []string{pick(g, ttls)}}
	}
	return op{name: "del", keys: key}
}

// client is what clients say of themselves and what is read of it, and damage to
// that.
func (g *generator) client([]string) op {
	n := 1 + g.IntN(len(procKeys)-1)
	list, own := procKeys[:1], procKeys[n:n+1]
	roster, whois := op{name: "roster", keys: list}, op{name: "whois", keys: own}
	switch g.IntN(20) {
	case 0: // of another type
		g.repair(list[0])
		g.planned = append(g.planned, pick(g, []op{g.announce(n, ""), g.announce(n, "a"), roster}))
		return op{name: "list", keys: list}
	case 1, 2:
		g.planned = append(g.planned, pick(g, []op{g.announce(n, "a"), whois, whois}))
		return op{name: "list", keys: own}
	case 3:
		g.planned = append(g.planned, roster)
		return pick(g, []op{{name: "persist", keys: list}, {name: "del", keys: list}, {name: "del", keys: own}, {name: "pexpire", keys: list, args: []string{pick(g, ttls)}}})
	case 4:
		return pick(g, []op{roster, whois, whois})
	case 5:
		g.planned = append(g.planned, whois)
		return g.announce(n, "")
	case 6, 7, 8, 9, 10, 11: // it crashes, and is dropped from the list at the edge of a ms
		lives, crashes := g.announce(n, "lives"), g.announce(1+n%(len(procKeys)-1), "crashes")
		lives.args[2] = "15000"
		late := pick(g, []op{roster, roster, g.announce(n, "a")})
		late.step = int64(atoi(crashes.args[2]))*1000 + pick(g, []int64{0, 999_999, 1_000_000, 1_001_000, 1_001_000, 1_500_000})
		g.planned = append(g.planned, crashes, late)
		return lives
	}
	g.planned = append(g.planned, pick(g, []op{roster, whois, g.announce(n, ""), g.announce(n, "b")}))
	return g.announce(n, "a")
}

// announce is what client n says.
func (g *generator) announce(n int, text string) op {
	return op{name: "announce", keys: []string{procKeys[0], procKeys[n]}, args: []string{"client " + procKeys[n], text, pick(g, ttls)}}
}

// diary is what is written down of leases and read again, and damage to that.
func (g *generator) diary([]string) op {
	switch g.IntN(20) {
	case 0, 1:
		g.repair(eventKeys[0])
		g.planned = append(g.planned, pick(g, []op{g.note(), g.events()}))
		return op{name: "list", keys: eventKeys}
	case 2:
		return op{name: pick(g, []string{"del", "persist"}), keys: eventKeys}
	case 3, 4:
		return g.events()
	}
	g.planned = append(g.planned, pick(g, []op{g.note(), g.events(), g.events()}), g.events())
	return g.note()
}

func (g *generator) note() op {
	args := []string{pick(g, []string{"0", "1", "4", "4", "6"}), pick(g, append([]string{"900000", "900000"}, ttls...))}
	for range g.IntN(4) {
		args = append(args, pick(g, []string{"", "a", "b c", "{}"}))
	}
	return op{name: "note", keys: eventKeys, args: args}
}

func (g *generator) events() op {
	after := pick(g, []string{"", "0-0", "0", "1800000000000-1", "1800000000500", "9999999999999-0"})
	if all, _ := g.w.model.XRange(eventKeys[0]); len(all) > 0 && g.chance(50) {
		after = pick(g, all).ID()
		if g.chance(10) {
			after, _, _ = strings.Cut(after, "-")
		}
	}
	return op{name: "events", keys: eventKeys, args: []string{after, pick(g, []string{"-1", "0", "1", "2", "3", "100"})}}
}
