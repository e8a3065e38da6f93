package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zamok-go/zamok/internal/model"
)

const (
	perHistory = 1000
	usual      = 200_000 // operations
	leastHits  = 100     // of every branch, in so many
)

// TestModelIsTheScripts is the reason for which package model can be believed. Chance
// has some branch reached too seldom once in a while: then it goes on, for as long again
// at most.
func TestModelIsTheScripts(t *testing.T) {
	total := fromEnv(t, "ZAMOK_DIFF_OPS", usual)
	seed := fromEnv(t, "ZAMOK_DIFF_SEED", rand.Uint64N(1<<62))
	least := int64(leastHits * total / usual)
	histories := (total + perHistory - 1) / perHistory
	w := newWorld(t)
	for i := uint64(0); i < histories || i < 2*histories && w.rarest() < least; i++ {
		history, difference, err := w.history(seed+i, perHistory)
		if err != nil {
			t.Fatal(err)
		}
		if difference != "" {
			t.Fatalf("ZAMOK_DIFF_SEED=%d: after %d operations\n%s\n%s", seed, int(i)*perHistory+len(history), difference, w.shrunk(history))
		}
	}
	w.checkBranches(t, least, seed)
}

// rarest says how often the branch was reached that was reached least.
func (w *world) rarest() int64 {
	return slices.Min(slices.Collect(maps.Values(w.model.Hits())))
}

// checkBranches: what was not tried is not known to agree.
func (w *world) checkBranches(t *testing.T, least int64, seed uint64) {
	t.Helper()
	hits := w.model.Hits()
	branches := slices.SortedFunc(maps.Keys(hits), func(a, b model.Branch) int { return cmp.Compare(hits[a], hits[b]) })
	for i, b := range branches {
		if hits[b] < least {
			t.Errorf("ZAMOK_DIFF_SEED=%d: the branch %v was reached %d times, want %d", seed, b, hits[b], least)
		} else if i < 10 {
			t.Logf("%6d times %v", hits[b], b)
		}
	}
}

// history does n random operations, or fewer if one of them shows a difference.
func (w *world) history(seed uint64, n int) (done []op, difference string, err error) {
	if err := w.reset(); err != nil {
		return nil, "", err
	}
	g := newGenerator(w, seed)
	for range n {
		o := g.next()
		done = append(done, o)
		if difference, err = w.watched(o); err != nil || difference != "" {
			return done, difference, err
		}
		g.learn(o)
	}
	return done, "", nil
}

// learn keeps the ticket of one that waits: it may come with it again.
func (g *generator) learn(o op) {
	if !strings.HasSuffix(o.name, "acquire") && o.name != "line" {
		return
	}
	all, _ := g.w.model.ZRange(o.keys[1])
	for _, m := range all {
		if m.Member == g.member[o.args[0]] {
			g.ticket[o.args[0]] = strconv.FormatFloat(m.Score, 'f', 0, 64)
		}
	}
}

// replay says whether the operations, in a history of their own, show a
// difference, and after which of them.
func (w *world) replay(history []op) (at int, difference string) {
	if err := w.reset(); err != nil {
		return 0, ""
	}
	for i, o := range history {
		if d, err := w.watched(o); err != nil || d != "" {
			return i, d
		}
	}
	return 0, ""
}

// shrunk leaves out of a history that fails whatever it can do without. Pieces
// of half the length are tried first, then ever smaller ones.
func (w *world) shrunk(history []op) string {
	for size := len(history) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(history)-1; {
			to := min(from+size, len(history)-1) // the last one shows the difference
			rest := append(append([]op{}, history[:from]...), history[to:]...)
			rest[from].step += steps(history[from:to]) // time passes all the same
			if at, d := w.replay(rest); d != "" {
				history, shorter = rest[:at+1], true
			} else {
				from = to
			}
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	_, difference := w.replay(history)
	var b strings.Builder
	fmt.Fprintf(&b, "The shortest history found that shows a difference:\n")
	for _, o := range history {
		fmt.Fprintf(&b, "  %v\n", o)
	}
	fmt.Fprint(&b, difference)
	return b.String()
}

func steps(ops []op) (sum int64) {
	for _, o := range ops {
		sum += o.step
	}
	return sum
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestBranchesHaveNames: a failure must say which one was not reached.
func TestBranchesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for b := range model.New(model.Env{Now: func() int64 { return 0 }}).Hits() {
		if b.String() == "" || seen[b.String()] {
			t.Errorf("branch %d has the name %q", int(b), b)
		}
		seen[b.String()] = true
	}
}
