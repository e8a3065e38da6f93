package inspect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
)

// made makes a lock from a line: NAME CLIENT and then its waiters, each
// CLIENT<UNDER,UNDER of which UNDER is the name of a lock that the waiter's client
// holds; CLIENT alone has nothing above it, and one that begins with † is dead. All
// holders have their locks for 10 s, and all wait for 5.
func made(line string) Lock {
	f := strings.Fields(line)
	l := Lock{
		Name: f[0], Key: "lock:" + f[0], Held: true, Waiting: len(f) - 2, Holding: 1,
		Holders: []Holder{{Holder: zamok.Holder{Client: f[1], Token: "token of " + f[0]}, Since: 10 * time.Second}},
	}
	for n, text := range f[2:] {
		client, under, _ := strings.Cut(text, "<")
		client, dead := strings.CutPrefix(client, "†")
		w := Waiter{Place: n + 1, Alive: !dead, Waited: 5 * time.Second, Holder: zamok.Holder{Client: client, Token: fmt.Sprint("waiter ", n)}}
		for name := range strings.SplitSeq(under, ",") {
			if name != "" {
				w.Under = append(w.Under, "token of "+name)
			}
		}
		l.Waiters = append(l.Waiters, w)
	}
	return l
}

// words of a circle: its names, and ! if it is sure.
func circleWords(d Deadlock) string {
	s := ""
	for _, m := range d.Members {
		s += m.Name
	}
	if d.Sure {
		s += "!"
	}
	return s
}

func TestDeadlocks(t *testing.T) {
	for _, c := range []struct{ what, locks, want string }{
		{"nothing", "", ""},
		{"nobody waits", "a p;b q", ""},
		{"a chain", "a p q<b;b q r<c;c r", ""},
		{"two", "a p q<b;b q p<a", "ab!"},
		{"two, in the other order", "b q p<a;a p q<b", "ab!"},
		{"three", "c r q<b;b q p<a;a p r<c", "abc!"},
		{"three, the other way round", "a p q<b;b q r<c;c r p<a", "acb!"},
		{"itself", "a p p<a", "a!"},
		{"itself, within others", "a p p<b,a;b p", "a!"},
		{"one process under both", "a p p<b;b p p<a", "ab!"},
		{"one token of several", "a p q<x,b,y;b q r p<z,a", "ab!"},
		{"a dead waiter waits for nothing", "a p †q<b;b q p<a", ""},
		{"a dead one before a living", "a p †q<b q<b;b q p<a", "ab!"},
		{"under a lease that is over", "a p q<gone;b q p<a", ""},
		{"two of two", "a p q<b;b q p<a;c r s<d;d s r<c", "ab! cd!"},
		{"of two that hang together one is told", "a p q<b r<c;b q p<a;c r p<a", "ab!"},
		{"the shorter", "a p c<c;b q p<a;c r q<b p<a", "ac!"},
		{"unsure", "a p q;b q p", "ab"},
		{"one edge unsure", "a p q<b;b q p", "ab"},
		{"unsure by one process", "a p p;b p p", "ab"},
		{"two goroutines want one lock", "a p p p p", ""},
		{"unsure, and more are under nothing that waits", "a p p<b;b p", ""},
		{"a sure one hides the unsure ones that hang on it", "a p q<b s;b q p<a;c s p", "ab!"},
		{"a sure one beside an unsure one", "a p q<b;b q p<a;c r s;d s r", "ab! cd"},
		{"a wait under another lease is under no other", "a p q<c;b q p<a;c q", ""},
	} {
		var locks []Lock
		for line := range strings.SplitSeq(c.locks, ";") {
			if line != "" {
				locks = append(locks, made(line))
			}
		}
		for range 3 { // in any order
			var got []string
			for _, d := range Deadlocks(locks) {
				got = append(got, circleWords(d))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s: %q, want %q", c.what, s, c.want)
			}
			rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
		}
	}
}

// A member says who has its lock, and how that one waits for the next.
func TestDeadlockMembers(t *testing.T) {
	a, b := made("a p x q<b"), made("b q p<a")
	a.Holders[0].Service, a.Holders[0].Command, a.Holders[0].Fence, b.Key = "mailer", "mailer -x", 7, "own"
	d := Deadlocks([]Lock{b, a})[0]
	first, second := d.Members[0], d.Members[1]
	if first.Name != "a" || first.Key != "lock:a" || first.Holder.Client != "p" || first.Service != "mailer" || first.Command != "mailer -x" || first.Fence != 7 {
		t.Errorf("%+v", first)
	}
	if first.Waits.Holder.Client != "p" || first.Waits.Place != 1 || !first.Sure || second.Waits.Holder.Client != "q" || second.Waits.Place != 2 || second.Key != "own" {
		t.Errorf("%+v, %+v", first.Waits, second.Waits)
	}
	if got := d.String(); !strings.Contains(got, `mailer on  pid 0 holds "a" and waits for "b"; `) || !strings.Contains(got, `holds "b" and waits for "a"`) {
		t.Errorf("%q", got)
	}
}

// Who has no lease above its wait is no part of a circle when it waited before the
// lease was there, nor at a lock that is at rest, foreign or free.
func TestNoDeadlock(t *testing.T) {
	for what, change := range map[string]func(a, b *Lock){
		"waited before":      func(a, _ *Lock) { a.Holders[0].Since = 4 * time.Second },
		"not known when":     func(a, _ *Lock) { a.Holders[0].Since = 0 },
		"not told yet":       func(a, _ *Lock) { a.Waiters[0].Waited = 1900 * time.Millisecond },
		"at rest":            func(a, _ *Lock) { a.Holders[0].Holder.Resting = true },
		"foreign":            func(a, _ *Lock) { a.Holders[0].Holder = zamok.Holder{Token: a.First().Holder.Token, Foreign: true} },
		"free":               func(a, _ *Lock) { a.Held, a.Holders[0].Holder = false, zamok.Holder{} },
		"nothing is changed": func(_, _ *Lock) {},
	} {
		a, b := made("a p q"), made("b q p")
		change(&a, &b)
		if n := len(Deadlocks([]Lock{a, b})); n != 0 != (what == "nothing is changed") {
			t.Errorf("%s: %d deadlocks", what, n)
		}
	}
}

// TestDeadlocksAtRandom compares with a search of all ways: a circle is told for
// each set of locks that hang together, it is one, and none is shorter.
func TestDeadlocksAtRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	found := 0
	for range 3000 {
		n := 1 + r.IntN(7)
		edges := map[[2]int]bool{}
		locks := make([]Lock, n)
		for i := range locks {
			line := fmt.Sprintf("n%d p%d", i, i)
			for j := range n {
				if r.IntN(n+2) == 0 {
					line += fmt.Sprintf(" p%d<n%d", j, j)
					edges[[2]int{j, i}] = true
				}
			}
			locks[i] = made(line)
		}
		dist := distances(n, edges)
		told := make([]bool, n)
		for _, d := range Deadlocks(locks) {
			found++
			at := make([]int, len(d.Members))
			for k, m := range d.Members {
				at[k] = slices.IndexFunc(locks, func(l Lock) bool { return l.Name == m.Name })
				told[at[k]] = true
			}
			for k := range at {
				if !edges[[2]int{at[k], at[(k+1)%len(at)]}] || at[k] < at[0] || dist[at[k]][at[k]] < len(at) {
					t.Fatalf("seed %d: %v is no shortest circle of %v", seed, at, edges)
				}
			}
			for i := range n { // all that hang together with it are spoken for
				told[i] = told[i] || dist[i][at[0]] < far && dist[at[0]][i] < far
			}
		}
		for i := range n {
			if dist[i][i] < far && !told[i] {
				t.Fatalf("seed %d: nothing is told of node %d of %v", seed, i, edges)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d circles were tried", found)
	}
}

const far = 1000

// distances are the shortest ways, of one edge at least.
func distances(n int, edges map[[2]int]bool) [][]int {
	d := make([][]int, n)
	for i := range d {
		d[i] = make([]int, n)
		for j := range d[i] {
			d[i][j] = far
			if edges[[2]int{i, j}] {
				d[i][j] = 1
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	return d
}

// Thousands of one process that wait for each other's locks cost no more than a
// moment, and a circle of thousands neither.
func TestDeadlocksOfMany(t *testing.T) {
	var crowd, ring, pairs []Lock
	for n := range 2000 {
		pairs = append(pairs, made(fmt.Sprintf("n%04d p%d p%d<n%04d", n, n, n^1, n^1)))
		crowd = append(crowd, made(fmt.Sprintf("n%04d p p p", n)))
		ring = append(ring, made(fmt.Sprintf("n%04d p%d p%d<n%04d", n, n, (n+1)%2000, (n+1)%2000)))
	}
	start := time.Now()
	if d := Deadlocks(crowd); len(d) != 1 || d[0].Sure || len(d[0].Members) != 2 {
		t.Errorf("a crowd: %d", len(d))
	}
	if d := Deadlocks(ring); len(d) != 1 || !d[0].Sure || len(d[0].Members) != 2000 {
		t.Errorf("a ring: %d", len(d))
	}
	if d := Deadlocks(pairs); len(d) != 1000 || !d[0].Sure || len(d[999].Members) != 2 {
		t.Errorf("pairs: %d", len(d))
	}
	if took := time.Since(start); took > time.Minute { // a search of every path does not end
		t.Errorf("it took %v", took)
	}
}
