package itest

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// nodes are the servers of a quorum.
type nodes []server

// startNodes starts n servers, each stamped as new, so that they vote from the start.
func startNodes(t testing.TB, n int, longest time.Duration) nodes {
	t.Helper()
	all := make(nodes, n)
	for i := range all {
		all[i] = startServer(t)
	}
	all.stamp(t, longest)
	return all
}

func nodeName(i int) string { return fmt.Sprint("node", i) }

func (all nodes) stamp(t testing.TB, longest time.Duration) {
	t.Helper()
	names := make([]string, len(all))
	for i := range all {
		names[i] = nodeName(i)
	}
	terms := strconv.FormatInt(longest.Milliseconds(), 10) + " " + strings.Join(names, ",")
	for i, s := range all {
		call := driver.Call{Script: lua.Stamp, Keys: []string{"zamok:node"}, Args: []string{terms}, Limit: patience}
		reply, err := libraries[i%2].new(t, s.URL()).Eval(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if said := reply.([]any)[0]; said != "stamped" {
			t.Fatalf("stamp of %s: %v", nodeName(i), said)
		}
	}
}

// drivers makes one for each node, with the libraries in turn.
func (all nodes) drivers(t testing.TB, turn int) []zamok.Node {
	t.Helper()
	out := make([]zamok.Node, len(all))
	for i, s := range all {
		out[i] = zamok.Node{Name: nodeName(i), Driver: libraries[(turn+i)%2].new(t, s.URL())}
	}
	return out
}

// client makes a client, as another process.
func (all nodes) client(t testing.TB, turn int, cfg zamok.Config) *zamok.Client {
	t.Helper()
	return quorumOn(t, all.drivers(t, turn), cfg)
}

func quorumOn(t testing.TB, list []zamok.Node, cfg zamok.Config) *zamok.Client {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := zamok.NewQuorum(list, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// have counts the nodes that have the lock, whoever its holder is.
func (all nodes) have(t testing.TB, name string) (n int) {
	t.Helper()
	for _, s := range all {
		if s.has(t, "lock:"+name) {
			n++
		}
	}
	return n
}

// clear says that no node has anything of the lock, nor anybody who waits for it.
func (all nodes) clear(t testing.TB, name string) bool {
	t.Helper()
	for _, s := range all {
		if s.has(t, "lock:"+name) || s.has(t, queue(name)) {
			return false
		}
	}
	return true
}

// mustClear waits until all are clear.
func (all nodes) mustClear(t testing.TB, name string) {
	t.Helper()
	within(t, patience, "nothing is left", func() bool { return all.clear(t, name) })
}
