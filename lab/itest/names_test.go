package itest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
)

var oddNames = []string{
	"{user}", "user{42}", "{user}{42}", "{{a}}", "{a}b}c{", "a{b", "a{", "{", "{ }", "{é}",
	" ", "a b", " a", "a ", "\t", "a\nb", "\n", "\r\n", "$5\r\nhello",
	"замок", "鍵", "🔒", "é\u0301", "\xff\xfe",
	"a:b", "a|b", "w|z1/h/1/r/1|15000|-", "z1/h/1/r/1:9000000000000000", "lock:a", "zamok:queue:{a}",
	"*", "?", "[a-z]", `\`, `\*`, `"'`, "%d%s", "-", "0",
	strings.Repeat("x", keys.MaxName),
	strings.Repeat("鍵", 170) + "xy",
	"{" + strings.Repeat("t", keys.MaxName-2) + "}",
	strings.Repeat("{", keys.MaxName),
}

// The whole life of a lock: taken, shown, waited for, renewed, used, handed over
// and released.
func TestCase28OddNamesWork(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		for kind, start := range map[string]func(*testing.T) server{
			"standalone": func(t *testing.T) server { return startServer(t) },
			"cluster":    startShard,
		} {
			t.Run(kind, func(t *testing.T) {
				s := start(t)
				d := &slots{Driver: lib.new(t, s.URL())}
				for _, prefix := range []string{"", "app:", "{app}:"} {
					life := newLife(t, s, d, prefix)
					for _, name := range oddNames {
						t.Run(fmt.Sprintf("%.30q", prefix+name), func(t *testing.T) { life.live(t, name) })
					}
				}
				d.check(t)
			})
		}
	})
}

// life is two clients that use locks in turn, and an operator who looks.
type life struct {
	s      server
	prefix string
	a, b   *zamok.Client
	look   *inspect.Inspector
	handed chan zamok.AcquiredInfo // what the second client acquired
}

func newLife(t *testing.T, s server, d driver.Driver, prefix string) *life {
	t.Helper()
	l := &life{s: s, prefix: prefix, handed: make(chan zamok.AcquiredInfo, 10)}
	l.a = clientOn(t, d, &zamok.Config{Prefix: prefix})
	l.b = clientOn(t, d, &zamok.Config{Prefix: prefix, Trace: &zamok.Trace{
		Acquired: func(i zamok.AcquiredInfo) { l.handed <- i },
	}})
	var err error
	if l.look, err = inspect.New(d, prefix); err != nil {
		t.Fatal(err)
	}
	return l
}

// live has the lock handed over by the message of the release, which has the
// lock's key in it. On a busy machine the waiter's own look may come first.
func (l *life) live(t *testing.T, name string) {
	for range 5 {
		if l.once(t, name) || t.Failed() {
			return
		}
	}
	t.Error("the message of the hand-over never came")
}

// once takes a lock through all that can be done with it, and says whether it was
// handed over by a message.
func (l *life) once(t *testing.T, name string) (handedOver bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first := tryLock(t, l.a.Mutex(name, nil))
	key := l.prefix + "lock:" + name
	if v := l.s.get(t, key); v != value(first) || first.Name() != name {
		t.Errorf("the lease of %q is %q, the key holds %q", first.Name(), value(first), v)
	}
	_, err := l.b.Mutex(name, nil).TryLock(ctx)
	var held *zamok.HeldError
	if !errors.As(err, &held) || held.Name != name || held.Fence != first.Fence() {
		t.Errorf("a rival: %v", err)
	}

	result := goLock(ctx, l.b.Mutex(name, nil))
	within(t, patience, "it waits", func() bool { return l.shown(t, name).Waiting == 1 })
	l.listed(t, name, first)
	if err := first.Extend(ctx, time.Minute); err != nil || l.s.pttl(t, key) < 50*time.Second {
		t.Errorf("Extend: %v, %v left", err, l.s.pttl(t, key))
	}
	l.run(t, first)
	release(t, first)

	g := receive(t, result, "lock")
	if g.err != nil {
		t.Fatalf("the waiter: %v", g.err)
	}
	acquired := receive(t, l.handed, "acquire")
	if acquired.Name != name {
		t.Errorf("acquired %+v", acquired)
	}
	if g.lease.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", g.lease.Fence(), first.Fence())
	}
	if shown := l.shown(t, name); shown.Waiting != 0 || shown.First().Token != g.lease.Token() {
		t.Errorf("after the hand-over: %+v", shown)
	}
	l.pass(t, g.lease, key)
	return acquired.HandedOver
}

// pass gives the lease to another client, and that releases it.
func (l *life) pass(t *testing.T, lease *zamok.Lease, key string) {
	t.Helper()
	token, err := lease.Detach()
	if err != nil {
		t.Fatal(err)
	}
	last, err := l.a.Mutex(lease.Name(), nil).Resume(t.Context(), token)
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	release(t, last)
	if l.s.has(t, key) || l.shown(t, lease.Name()).Held {
		t.Error("a release left the key")
	}
}

func (l *life) shown(t *testing.T, name string) inspect.Lock {
	t.Helper()
	shown, err := l.look.Show(t.Context(), name)
	if err != nil || shown.Name != name || shown.Err != nil {
		t.Fatalf("Show: %+v, %v", shown, err)
	}
	return shown
}

// listed checks that the lock is the only one in the list. One server of a cluster
// has no whole list.
func (l *life) listed(t *testing.T, name string, lease *zamok.Lease) {
	t.Helper()
	view, err := l.look.Scan(t.Context())
	if errors.Is(err, inspect.ErrCluster) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	list := locksOf(t, view)
	if len(list) != 1 || list[0].Name != name || list[0].First().Fence != lease.Fence() || list[0].Waiting != 1 || list[0].Err != nil {
		t.Errorf("listed: %+v", list)
	}
}

func locksOf(t *testing.T, view *inspect.View) []inspect.Lock {
	t.Helper()
	var list []inspect.Lock
	for l, err := range view.Locks(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

// run has a script write where the lock is: in its own slot.
func (l *life) run(t *testing.T, lease *zamok.Lease) {
	t.Helper()
	data := fmt.Sprintf("data:{%s}", slotTagOf(t, l.prefix, lease.Name()))
	if reply, err := lease.Run(t.Context(), writeScript, []string{data}, "written"); err != nil || reply != "OK" {
		t.Errorf("Run: %v, %v", reply, err)
	}
	if v := l.s.get(t, data); v != "written" {
		t.Errorf("the script wrote %q", v)
	}
}

// slotTagOf returns a tag of the lock's slot: that of its fence counter.
func slotTagOf(t *testing.T, prefix, name string) string {
	t.Helper()
	set, err := keys.ForName(prefix, name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(set.Fence(), "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

// What a process says that it holds has the names unchanged, whatever they are
// made of: that is the list in a cluster.
func TestCase28OddNamesAreListed(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startShard(t)
		d := &slots{Driver: lib.new(t, s.URL())}
		c := clientOn(t, d, nil)
		look, err := inspect.New(d, "")
		if err != nil {
			t.Fatal(err)
		}
		fences := map[string]int64{}
		for _, name := range oddNames {
			fences[name] = tryLock(t, c.Mutex(name, nil)).Fence()
		}
		var list []inspect.Lock
		within(t, patience, "all are listed", func() bool {
			view, err := look.Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list = locksOf(t, view)
			return len(list) >= len(oddNames)
		})
		for _, l := range list {
			if l.Err != nil || l.First().Fence == 0 || l.First().Fence != fences[l.Name] {
				t.Errorf("listed: %+v", l)
			}
		}
		if len(list) != len(oddNames) {
			t.Errorf("%d are listed, want %d", len(list), len(oddNames))
		}
		d.check(t)
	})
}

// Names with one hash tag share a slot and nothing else: each has its own holder,
// queue and hand-over.
func TestCase28NamesOfOneTag(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		s := startShard(t)
		d := &slots{Driver: lib.new(t, s.URL())}
		a, b := clientOn(t, d, nil), clientOn(t, d, nil)
		look, err := inspect.New(d, "")
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"{42}", "a{42}", "b{42}", "{42}lock:a{42}"}
		leases, results := map[string]*zamok.Lease{}, map[string]<-chan got{}
		for _, name := range names {
			leases[name] = tryLock(t, a.Mutex(name, nil))
			results[name] = goLock(t.Context(), b.Mutex(name, nil))
		}
		for _, name := range names {
			within(t, patience, "one waits for "+name, func() bool {
				l, err := look.Show(t.Context(), name)
				return err == nil && l.Waiting == 1
			})
		}
		for i, name := range names {
			release(t, leases[name])
			g := receive(t, results[name], "lock")
			if g.err != nil || g.lease.Name() != name {
				t.Fatalf("%s: %v", name, g.err)
			}
			for _, later := range names[i+1:] {
				if len(results[later]) > 0 {
					t.Errorf("the release of %s woke the waiter of %s", name, later)
				}
			}
			release(t, g.lease)
		}
		d.check(t)
	})
}
