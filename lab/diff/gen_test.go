package diff

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// generator makes operations. It looks at the model to make those likely that
// matter: by the holder, at the edge of an expiry.
type generator struct {
	*rand.Rand
	w       *world
	member  map[string]string // token → its last entry in a queue
	ticket  map[string]string // token → the ticket that it got
	planned []op              // what comes next
	repairs []op              // what sets right, some time, what was damaged
	last    op
}

func newGenerator(w *world, seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), w: w, member: map[string]string{}, ticket: map[string]string{}}
}

var (
	// One is the beginning of another, and of a stranger's.
	tokens  = []string{"z1/h/1/a/1", "z1/h/1/a/11", "z1/h/2/b/1", "z1/h/2/b/2", "z1/h/3/c/1", "z1/h/3/c/2"}
	inboxes = []string{"in:1", "in:2", "in:3", "in:{4}"}
	ttls    = []string{"1", "2", "100", "999", "1000", "1001", "1999", "2000", "2001", "5000", "15000", "15000"}
)

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent float64) bool { return g.Float64()*100 < percent }

// next returns the next operation.
func (g *generator) next() op {
	var o op
	switch {
	case len(g.planned) > 0:
		o, g.planned = g.planned[0], g.planned[1:]
	case len(g.repairs) > 0 && g.chance(15):
		o, g.repairs = g.repairs[0], g.repairs[1:]
	case g.last.isScript() && g.last.name != "" && g.chance(4):
		o = g.last // its reply was lost, and the library sends it again
		o.step = 0
	default:
		o = g.fresh()
	}
	o = g.withNode(o)
	if o.step == 0 {
		o.step = g.step()
	}
	g.last = o
	return o
}

func (g *generator) fresh() op {
	keys := pick(g, lockKeys)
	return g.weighted(keys, []kind{
		{20, g.acquire}, {18, g.release}, {4, g.letGo}, {9, g.renew}, {6, g.resume}, {4, g.inspect}, {9, g.guard},
		{7, g.connection}, {10, g.damageLock}, {3.5, g.damageQueue}, {7, g.damageFence}, {3.5, g.damageCall}, {2, g.damageBroken},
		{1.3, g.bury}, {20.5, g.breaking}, {7, g.client}, {4, g.diary}, {88, g.semaphore}, {75, g.reading}, {7, g.multi}, {16, g.node}, {20, g.quorum},
		{0.2, func([]string) op { return op{name: "flushall"} }},
	})
}

// kind is one of several things that may come next.
type kind struct {
	weight float64
	make   func(keys []string) op
}

func (g *generator) weighted(keys []string, kinds []kind) op {
	total := 0.0
	for _, k := range kinds {
		total += k.weight
	}
	at := g.Float64() * total
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			return k.make(keys)
		}
	}
	return kinds[0].make(keys)
}

// token is mostly the holder's, or a reader's, as little happens to others.
func (g *generator) token(keys []string, holder float64) string {
	if v, ok, _ := g.w.model.Get(keys[0]); ok && g.chance(holder) {
		if strings.HasPrefix(v, marker) {
			return g.member0(keys[3])
		}
		token, _, _ := strings.Cut(v, ":")
		return token
	}
	return pick(g, tokens)
}

func (g *generator) acquire(keys []string) op {
	return g.asks("acquire", keys, g.token(keys, 15), pick(g, []string{"w", "w", "w", "W"}))
}

// asks is acquire or read_acquire.
func (g *generator) asks(name string, keys []string, token, mode string) op {
	ttl, inbox, ticket := pick(g, ttls), pick(g, inboxes), "0"
	switch {
	case g.chance(25):
		inbox = ""
	case g.chance(15):
		inbox = "-"
	}
	switch {
	case g.ticket[token] != "" && g.chance(25):
		ticket = g.ticket[token]
	case g.chance(3): // one that was given when the clock was ahead
		ticket = strconv.FormatInt(g.w.clock.us+g.Int64N(10_000_000), 10)
	}
	g.member[token] = mode + "|" + token + "|" + ttl + "|" + inbox
	return op{name: name, keys: keys[:4], args: []string{token, ttl, inbox, ticket, mode}}
}

func (g *generator) release(keys []string) op {
	token := g.token(keys, 50)
	member, rest := "", "0"
	switch waiters, _ := g.w.model.ZRange(keys[1]); {
	case len(waiters) > 0 && g.chance(12):
		member = pick(g, waiters).Member
	case g.chance(60):
		member = g.member[token]
	case g.chance(10):
		member = "x|nobody|5|-"
	}
	if g.chance(15) {
		rest = pick(g, ttls)
	}
	return op{name: "release", keys: keys[:4], args: []string{token, member, rest}}
}

func (g *generator) letGo(keys []string) op {
	return op{name: "let_go", keys: keys[:1], args: []string{g.token(keys, 50)}}
}

func (g *generator) renew(keys []string) op {
	ttl := pick(g, ttls)
	if g.chance(25) {
		ttl = "0"
	}
	o := op{name: "renew", keys: keys[:1], args: []string{g.token(keys, 70), ttl}}
	if g.chance(30) { // as a reader
		o.keys = readerKeys(keys)
	}
	return o
}

func (g *generator) resume(keys []string) op {
	after := pick(g, tokens)
	if g.chance(15) {
		after = g.token(keys, 100)
	}
	return op{name: "resume", keys: keys[:4], args: []string{g.token(keys, 70), after, pick(g, ttls)}}
}

func (g *generator) inspect(keys []string) op {
	return op{name: "inspect", keys: keys[:5], args: []string{pick(g, []string{"0", "1", "2", "100"})}}
}

func (g *generator) guard(keys []string) op {
	what := pick(g, []string{"nil", "list", "list"})
	return op{name: "guard", keys: []string{keys[0], pick(g, callKeys), keys[3], userKeys[0], userKeys[1]},
		args: []string{g.token(keys, 75), strconv.FormatInt(g.w.clock.us, 10), strconv.Itoa(g.IntN(9)), what}}
}

func (g *generator) connection([]string) op {
	name := pick(g, []string{"conn.subscribe", "conn.subscribe", "conn.unsubscribe", "conn.subscribe2", "conn.unsubscribe2", "conn.scriptflush"})
	if name == "conn.scriptflush" {
		return op{name: name}
	}
	return op{name: name, keys: []string{pick(g, inboxes)}}
}

// bury leaves about as many dead waiters as one call drops, and then lets one
// call meet them.
func (g *generator) bury(keys []string) op {
	next := pick(g, []op{g.acquire(keys), g.acquire(keys), g.readAcquire(keys), g.release(keys)})
	g.planned = append(g.planned, op{name: "del", keys: keys[:1]}, g.buried(keys), next)
	return op{name: "del", keys: keys[1:2]}
}

func (g *generator) buried(keys []string) op {
	return op{name: "bury", keys: keys[1:2], args: []string{strconv.Itoa(999 + g.IntN(4))}}
}

// step is by how many µs the clock moves. Expiry has an edge, so it likes to go
// exactly there.
func (g *generator) step() int64 {
	if g.chance(12) {
		key := pick(g, dumpKeys)
		if at := g.w.model.Deadline(key); at > 0 {
			edge := at*1000 + pick(g, []int64{-1, 0, 999, 1000, 1001})
			return max(0, edge-g.w.clock.us)
		}
	}
	switch n := g.Float64() * 100; {
	case n < 70:
		return g.Int64N(4)
	case n < 85:
		return g.Int64N(3_000)
	case n < 95:
		return g.Int64N(2_500_000)
	case n < 97:
		return g.Int64N(20_000_000)
	case n < 97.2:
		return 901_000_000
	case n < 98.2:
		return -g.Int64N(5_000_000)
	case n < 98.3:
		return -3_600_000_000
	}
	return 0
}
