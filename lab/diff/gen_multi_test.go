package diff

import "slices"

// multi takes both locks, or one, in any order.
func (g *generator) multi([]string) op {
	locks := slices.Clone(lockKeys)
	g.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
	if g.chance(10) {
		locks = locks[:1]
	}
	o := op{name: "multi_acquire", args: []string{pick(g, []string{"0", "1"}), pick(g, ttls)}}
	for _, keys := range locks {
		o.keys = append(o.keys, keys[:3]...)
		o.args = append(o.args, g.token(keys, 35))
	}
	last := locks[len(locks)-1]
	switch n := g.IntN(20); {
	case n < 7: // they are free
		g.planned = append(append(g.planned, freed(locks[0])...), freed(last)...)
	case n < 10: // the last one is, and the first perhaps
		g.planned = append(g.planned, freed(last)...)
	case n < 12: // free, and waited for
		g.planned = append(g.planned, op{name: "del", keys: last[:1]})
	case n < 13: // an operator broke one that the token has
		broken := op{name: "setpx", keys: last[:1], args: []string{o.args[len(o.args)-1] + ":7!bob!stuck", pick(g, ttls)}}
		g.planned = append(append(g.planned, freed(locks[0])...), broken)
	case n < 15:
		g.repair(last[2])
		g.planned = append(append(g.planned, freed(last)...), op{name: "list", keys: last[2:3]})
	}
	g.planned = append(g.planned, o)
	if g.chance(40) { // its reply was lost, and the library sends it again
		g.planned = append(g.planned, o)
	}
	first := g.planned[0]
	g.planned = g.planned[1:]
	return first
}

// freed leaves nothing of a lock.
func freed(keys []string) []op {
	return []op{{name: "del", keys: keys[:1]}, {name: "del", keys: keys[1:2]}}
}
