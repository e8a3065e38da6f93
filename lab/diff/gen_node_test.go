package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ofNode is how many keys the scripts have that may grant somebody something, without
// that of the node; 3 is for each of several locks.
var ofNode = map[string]int{
	"acquire": 4, "read_acquire": 4, "sem_acquire": 4, "multi_acquire": 3, "resume": 4, "downgrade": 4,
	"release": 4, "sem_release": 4, "sem_limit": 4, "break": 5,
}

// terms of the deployment, and others.
const (
	terms      = "700 -"
	otherTerms = "900 a,b,c"
)

// withNode lets an operation be that of a client with quarantine.
func (g *generator) withNode(o op) op {
	n, ok := ofNode[o.name]
	if ok && (len(o.keys) == n || n == 3 && len(o.keys)%3 == 0) && g.chance(30) {
		if o = quarantined(o); g.chance(4) {
			o.args[len(o.args)-1] = otherTerms
		}
	}
	return o
}

func quarantined(o op) op {
	o.keys, o.args = append(slices.Clone(o.keys), nodeKey), append(slices.Clone(o.args), terms)
	return o
}

// inQuarantine is what comes while nobody may be granted anything.
func (g *generator) inQuarantine(keys []string) []op {
	switch token := g.token(keys, 100); g.IntN(5) {
	case 0:
		return []op{
			{name: "setpx", keys: keys[:1], args: []string{token + ":7", "1500"}},
			quarantined(op{name: "resume", keys: keys[:4], args: []string{token, "z1/h/9/z/3", pick(g, ttls)}}),
		}
	case 1: // a reader waits, and then somebody has the lock who may let it in
		return []op{
			{name: "zadd", keys: keys[1:2], args: []string{"1", "r|z1/h/8/y/2|1500|-"}},
			{name: "setpx", keys: keys[:1], args: []string{token + ":7", "1500"}},
			quarantined(op{name: "downgrade", keys: keys[:4], args: []string{token, "1500"}}),
		}
	case 2:
		o := op{name: "multi_acquire", keys: keys[:3], args: []string{"1", "1500", token}}
		return append(freed(keys), quarantined(o))
	case 3: // the first who waits for readers to go gives up
		return []op{
			{name: "zadd", keys: keys[1:2], args: []string{"1", "w|z1/h/8/y/2|1500|-"}},
			{name: "zadd", keys: keys[1:2], args: []string{"2", "r|z1/h/8/y/3|1500|" + pick(g, inboxes)}},
			{name: "setpx", keys: keys[:1], args: []string{marker + "7", "1500"}},
			quarantined(op{name: "release", keys: keys[:4], args: []string{"z1/h/8/y/2", "w|z1/h/8/y/2|1500|-", "0"}}),
		}
	}
	return []op{quarantined(g.readAcquire(keys))}
}

// node: what accidents and operators do to what is said of the server, and what is
// done about that.
func (g *generator) node(keys []string) op {
	ms := g.w.clock.us / 1000
	stamp := func(until int64, terms string) op {
		return op{name: "set", keys: []string{nodeKey}, args: []string{fmt.Sprintf("%s %d %s", g.w.run, until, terms)}}
	}
	switch g.IntN(10) {
	case 0:
		return op{name: "del", keys: []string{nodeKey}}
	case 1: // another process, or what is no stamp
		if g.chance(70) {
			g.planned = append(g.planned, op{name: "stamp", keys: []string{nodeKey}, args: []string{pick(g, []string{terms, otherTerms})}})
		}
		return op{name: "set", keys: []string{nodeKey}, args: []string{pick(g, []string{
			"abc 7 " + terms, "abc 7 " + otherTerms, g.w.run, g.w.run + " 7 ", g.w.run + " 7 x -", "? 7 " + terms, g.w.run + "  7 " + terms,
			g.w.run + " 7 700", g.w.run + " -7 " + terms, "", " 7 " + terms, g.w.run + " 7 700  ", g.w.run + " x " + terms})}}
	case 2: // the clock was set back since
		return stamp(ms+pick(g, []int64{699, 700, 701, 10_000}), terms)
	case 3, 8:
		g.planned = append(g.planned, g.inQuarantine(keys)...)
		return stamp(ms+pick(g, []int64{0, 1, 2, 5, 300, 600, 700}), terms)
	case 4:
		g.repair(nodeKey)
		return op{name: "list", keys: []string{nodeKey}}
	case 5, 6:
		return op{name: "stamp", keys: []string{nodeKey}, args: []string{pick(g, []string{"", terms, terms, otherTerms})}}
	case 7: // a server that is new
		g.planned = append(g.planned, op{name: "stamp", keys: []string{nodeKey}, args: []string{pick(g, []string{terms, terms, terms, ""})}})
		if g.chance(50) {
			return op{name: "flushall"}
		}
	}
	return stamp(ms-1, terms)
}

// closed says whether nobody may be granted anything by this: it is quarantine, or who
// acts was told other terms.
func (w *world) closed(o op) bool {
	if !slices.Contains(o.keys, nodeKey) {
		return false
	}
	terms := o.args[len(o.args)-1]
	if o.name == "vote" { // a proposal comes last
		terms = o.args[2]
	}
	v, _, _ := w.model.Get(nodeKey)
	var run, longest, members string
	var until int64
	n, _ := fmt.Sscanf(v, "%s %d %s %s", &run, &until, &longest, &members)
	return n == 4 && (until > w.clock.us/1000 || terms != longest+" "+members)
}

// nobodyInQuarantine: whoever has the lock had it before, or has less of it.
func (s step) nobodyInQuarantine() string {
	if !s.closed {
		return ""
	}
	for r := range s.after.readers {
		if _, had := s.before.readers[r]; !had && !(s.name == "downgrade" && r == s.args[0]) {
			return r + " reads, in quarantine"
		}
	}
	if s.after.held && !s.after.reads() && s.after.value != s.before.value && !s.rests() && !s.asks() {
		return s.after.value + " was granted it in quarantine"
	}
	return ""
}

// TestTermsAreTold: a client that was told other terms is refused with both.
func TestTermsAreTold(t *testing.T) {
	w := newWorld(t)
	if err := w.reset(); err != nil {
		t.Fatal(err)
	}
	for _, terms := range []string{terms, otherTerms} {
		o := op{name: "acquire", keys: append(slices.Clone(lockKeys[0][:4]), nodeKey), args: []string{"z1/h/1/a/1", "100", "", "0", "w", terms}}
		w.conn.add(eval(w.sources["acquire"], o.keys, o.args...)...)
		if err := w.conn.flush(); err != nil {
			t.Fatal(err)
		}
		v, err := w.conn.read()
		if err != nil {
			t.Fatal(err)
		}
		_, _, want := w.model.Run(o.name, o.keys, o.args)
		if terms == otherTerms && (want == nil || fmt.Sprint(v) != want.Error() || !strings.Contains(want.Error(), "700 - and the client 900 a,b,c")) {
			t.Errorf("the server says %v, the model %v", v, want)
		}
	}
}

// TestNoRunID: what a server that does not tell its run_id has lost nobody can know, so
// nobody is granted anything there, and the library explains the error by its text.
func TestNoRunID(t *testing.T) {
	w := newWorld(t)
	source := strings.Replace(w.sources["acquire"], "run_id:", "id_of_none:", 1)
	for _, stamp := range []string{"", "abc 7 " + terms} {
		if err := w.reset(); err != nil {
			t.Fatal(err)
		}
		if stamp != "" {
			w.conn.add("SET", nodeKey, stamp)
		}
		w.conn.add(eval(source, append(slices.Clone(lockKeys[0][:4]), nodeKey), []string{"z1/h/1/a/1", "100", "", "0", "w", terms}...)...)
		if err := w.conn.flush(); err != nil {
			t.Fatal(err)
		}
		var v any
		for range 1 + min(len(stamp), 1) {
			var err error
			if v, err = w.conn.read(); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(fmt.Sprint(v), "'run' (a nil value)") {
			t.Errorf("with %q in the key of the node: %v", stamp, v)
		}
	}
}
