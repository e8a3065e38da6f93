package inspect_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
)

// process is a client and, by it, all that another process would be.
func process(t *testing.T, d driver.Driver, prefix string) *zamok.Client {
	t.Helper()
	c, err := zamok.New(d, &zamok.Config{Prefix: prefix, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func inspector(t *testing.T, d driver.Driver, prefix string) *inspect.Inspector {
	t.Helper()
	in, err := inspect.New(d, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func show(t *testing.T, in *inspect.Inspector, name string) inspect.Lock {
	t.Helper()
	l, err := in.Show(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// all reads the locks of a view; an error that ends them fails the test.
func all(t *testing.T, v *inspect.View, pattern string) []inspect.Lock {
	t.Helper()
	var locks []inspect.Lock
	for l, err := range v.Locks(t.Context(), pattern) {
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	return locks
}

func look(t *testing.T, in *inspect.Inspector) *inspect.View {
	t.Helper()
	v, err := in.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func scan(t *testing.T, in *inspect.Inspector) *inspect.View {
	t.Helper()
	v, err := in.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// names are the names of locks, in their order.
func names(locks []inspect.Lock) string {
	var list []string
	for _, l := range locks {
		list = append(list, l.Name)
	}
	return strings.Join(list, " ")
}

func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "app:")
		if l := show(t, in, "report"); l.Held || l.Waiting != 0 || l.Key != "app:lock:report" {
			t.Errorf("a lock that nobody has: %+v", l)
		}
		owner := process(t, server, "app:")
		lease, err := owner.Mutex("report", &zamok.MutexConfig{TTL: 30 * time.Second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var ids []string
		for range 3 {
			c := process(t, server, "app:")
			ids = append(ids, c.ID())
			go c.Mutex("report", nil).Lock(ctx)
			time.Sleep(2 * time.Second) // virtual
		}
		l := show(t, in, "report")
		if !l.Held || l.First().Holder.Client != owner.ID() || l.First().Holder.Token != lease.Token() || l.First().Fence != lease.Fence() || l.NoTTL {
			t.Errorf("holder: %+v, want client %s, fence %d", l, owner.ID(), lease.Fence())
		}
		if l.First().Since != 6*time.Second || l.Left <= 20*time.Second || l.Left > 30*time.Second {
			t.Errorf("held for %v, %v left; want 6s and 24s to 30s", l.First().Since, l.Left)
		}
		if l.Waiting != 3 || len(l.Waiters) != 3 {
			t.Fatalf("%d waiters, %d listed; want 3", l.Waiting, len(l.Waiters))
		}
		for i, w := range l.Waiters {
			if w.Place != i+1 || w.Holder.Client != ids[i] || !w.Alive || w.Polls || w.Mode != "w" || w.TTL != 15*time.Second {
				t.Errorf("waiter %d: %+v, want client %s", i+1, w, ids[i])
			}
			if want := time.Duration(6-2*i) * time.Second; w.Waited != want {
				t.Errorf("waiter %d has waited %v, want %v", i+1, w.Waited, want)
			}
		}
	})
}

// A waiter whose connection is gone is shown as such.
func TestShowDeadWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		if _, err := process(t, server, "").Mutex("a", nil).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiter := process(t, server, "")
		go waiter.Mutex("a", nil).Lock(ctx)
		synctest.Wait()
		server.Break()
		if l := show(t, inspector(t, server, ""), "a"); len(l.Waiters) != 1 || l.Waiters[0].Alive {
			t.Errorf("waiters: %+v, want one that is not alive", l.Waiters)
		}
		server.Reconnect()
	})
}

func TestShowOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		server.Set("lock:foreign", "7c9e6679", 20*time.Second)
		if l := show(t, in, "foreign"); !l.Held || !l.First().Holder.Foreign || l.First().Holder.Token != "7c9e6679" || l.First().Fence != 0 || l.First().Since != 0 || l.Left != 20*time.Second {
			t.Errorf("foreign: %+v", l)
		}
		server.Set("lock:forever", "7c9e6679", 0)
		if l := show(t, in, "forever"); !l.Held || !l.NoTTL || l.Left != 0 {
			t.Errorf("no TTL: %+v", l)
		}
		c := process(t, server, "")
		err := c.Mutex("rest", &zamok.MutexConfig{MinHold: time.Minute}).Do(t.Context(), func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if l := show(t, in, "rest"); !l.Held || !l.First().Holder.Resting || l.First().Holder.Client != c.ID() || l.Left <= 50*time.Second {
			t.Errorf("resting: %+v", l)
		}
		server.SetList("lock:list")
		var se *driver.ServerError
		if _, err := in.Show(t.Context(), "list"); !errors.As(err, &se) || se.Code() != "WRONGTYPE" || !strings.Contains(err.Error(), `"list"`) {
			t.Errorf("a list: %v, want WRONGTYPE with the lock's name", err)
		}
	})
}

func TestMistakes(t *testing.T) {
	for _, field := range []struct {
		d      driver.Driver
		prefix string
		want   string
	}{{nil, "", "driver"}, {memory.New(), "a\x00", "prefix"}, {memory.New(), "a{", "prefix"}} {
		var ce *zamok.ConfigError
		if _, err := inspect.New(field.d, field.prefix); !errors.As(err, &ce) || ce.Field != field.want {
			t.Errorf("New(%v, %q): %v, want a *ConfigError of %q", field.d, field.prefix, err, field.want)
		}
	}
	in := inspector(t, memory.New(), "")
	for _, name := range []string{"", "a\x00", strings.Repeat("x", 513)} {
		var ce *zamok.ConfigError
		if _, err := in.Show(t.Context(), name); !errors.As(err, &ce) || ce.Field != "name" {
			t.Errorf("Show(%.10q): %v, want a *ConfigError of the name", name, err)
		}
		if name == strings.Repeat("x", 513) {
			continue // a key may be longer
		}
		if _, err := in.ShowKey(t.Context(), name); !errors.As(err, &ce) || ce.Field != "key" {
			t.Errorf("ShowKey(%.10q): %v, want a *ConfigError of the key", name, err)
		}
	}
	for what, f := range map[string]func() error{
		"CheckConfig.Held":   func() error { _, err := in.Check(t.Context(), &inspect.CheckConfig{Held: -1}); return err },
		"CheckConfig.Waited": func() error { _, err := in.Check(t.Context(), &inspect.CheckConfig{Waited: -1}); return err },
		"after":              func() error { _, err := in.Events(t.Context(), "+", 1); return err },
		"most":               func() error { _, err := in.Events(t.Context(), "", 1001); return err },
	} {
		var ce *zamok.ConfigError
		if err := f(); !errors.As(err, &ce) || ce.Field != what {
			t.Errorf("%v, want a *ConfigError of %s", err, what)
		}
	}
}

func TestServerTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		server.Down(nil)
		if _, err := in.Show(t.Context(), "a"); err == nil {
			t.Error("Show: no error from a server that is down")
		}
		if _, err := in.Look(t.Context()); err == nil {
			t.Error("Look: no error from a server that is down")
		}
		if _, err := in.Scan(t.Context()); err == nil {
			t.Error("Scan: no error from a server that is down")
		}
		if _, err := in.Check(t.Context(), nil); err == nil {
			t.Error("Check: no error from a server that is down")
		}
		if _, err := in.Events(t.Context(), "", 0); err == nil {
			t.Error("Events: no error from a server that is down")
		}
		held := inspect.Lock{Name: "a", Held: true, Holding: 1, Holders: []inspect.Holder{{Holder: zamok.Holder{Token: "x", Foreign: true}}}}
		if _, err := in.Break(t.Context(), held, &inspect.BreakConfig{Why: "x", Now: true}); err == nil {
			t.Error("Break: no error from a server that is down")
		}
	})
}

func hold(t *testing.T, c *zamok.Client, name string, cfg *zamok.MutexConfig) *zamok.Lease {
	t.Helper()
	lease, err := c.Mutex(name, cfg).TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}
