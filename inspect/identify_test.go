package inspect_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
)

// service is a client that says who it is.
func service(t *testing.T, d driver.Driver, cfg zamok.Config) *zamok.Client {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := zamok.New(d, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// announce writes what a client would say of itself, or anything else.
func announce(t *testing.T, s *memory.Server, id, text string, ttl time.Duration) {
	t.Helper()
	_, err := s.Eval(t.Context(), driver.Call{
		Script: lua.Announce, Keys: []string{keys.Procs(""), keys.Proc("", id)}, Limit: time.Second,
		Args: []string{id, text, fmt.Sprint(ttl.Milliseconds())},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kill takes the clients off the net for good: nothing that they send arrives any
// more, as after SIGKILL.
func kill(s *memory.Server, clients ...*zamok.Client) {
	s.Intercept(func(call driver.Call) memory.Fault {
		switch call.Script {
		case lua.Acquire, lua.Renew, lua.Release, lua.Announce, lua.Note:
			text := strings.Join(append(call.Keys, call.Args...), "\n")
			for _, c := range clients {
				if strings.Contains(text, c.ID()) {
					return memory.Fault{DropRequest: true}
				}
			}
		}
		return memory.Fault{}
	})
}

func TestShowSaysWhoItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		owner := service(t, server, zamok.Config{Name: "mailer", Version: "v1.4.0", Command: "mailer --all"})
		time.Sleep(time.Minute)
		hold(t, owner, "a", &zamok.MutexConfig{TTL: 40 * time.Second, Reason: "sending"})
		waiter := service(t, server, zamok.Config{Name: "report", Command: "report", Under: "z1/h/1/x/1"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go waiter.Mutex("a", nil).Lock(ctx)
		time.Sleep(5 * time.Second)
		for what, l := range map[string]inspect.Lock{"Show": show(t, in, "a"), "Locks": all(t, look(t, in), "")[0]} {
			if l.First().Service != "mailer" || l.First().Version != "v1.4.0" || l.First().Command != "mailer --all" || l.First().Reason != "sending" || l.First().TTL != 40*time.Second {
				t.Errorf("%s: %+v", what, l)
			}
			if l.First().Up < time.Minute || l.First().Up > 66*time.Second || l.First().Late != 0 || l.First().Detached || l.First().Silent || l.First().Broken != nil {
				t.Errorf("%s: %+v", what, l)
			}
			if w := l.Waiters[0]; w.Service != "report" || w.Command != "report" || len(w.Under) != 1 || w.Under[0] != "z1/h/1/x/1" {
				t.Errorf("%s: %+v", what, w)
			}
		}
	})
}

// A lease is never older than the client that took it, also when that has not spoken
// since.
func TestUpIsNoLessThanSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, process(t, server, ""), "a", nil)
		time.Sleep(4 * time.Second)
		for what, l := range map[string]inspect.Lock{"Show": show(t, in, "a"), "Locks": all(t, look(t, in), "")[0]} {
			if l.First().Up < l.First().Since || l.First().Up > 5*time.Second {
				t.Errorf("%s: up %v, held for %v", what, l.First().Up, l.First().Since)
			}
		}
	})
}

// A holder that stays on time is neither late nor silent, however long it holds
// and whatever its TTL; and one that has nothing need not speak.
func TestOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		owner := process(t, server, "")
		for _, ttl := range []time.Duration{100 * time.Millisecond, time.Second, 15 * time.Second, 10 * time.Minute, 24 * time.Hour} {
			hold(t, owner, ttl.String(), &zamok.MutexConfig{TTL: ttl})
		}
		extended := hold(t, owner, "extended", nil)
		if err := extended.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		first := hold(t, owner, "passed on", nil)
		go process(t, server, "").Mutex("passed on", nil).Lock(t.Context())
		synctest.Wait()
		first.Release(t.Context())
		idle := process(t, server, "")
		l := hold(t, idle, "short", nil)
		time.Sleep(time.Second)
		l.Release(t.Context())
		for range 240 {
			time.Sleep(777 * time.Millisecond)
			for _, l := range all(t, look(t, in), "") {
				if l.First().Late != 0 || l.First().Silent {
					t.Fatalf("%+v", l)
				}
			}
			for _, p := range look(t, in).Processes {
				if p.Silent || p.Seen > 31*time.Second && p.Holding > 0 {
					t.Fatalf("%+v", p)
				}
			}
		}
	})
}

// The holder is killed: its lock is shown as long as it is held, first as late and
// then as one of a process that says nothing.
func TestDeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		owner := service(t, server, zamok.Config{Name: "mailer"})
		hold(t, owner, "a", &zamok.MutexConfig{TTL: 3 * time.Minute})
		time.Sleep(5 * time.Second)
		kill(server, owner)
		for at := 5 * time.Second; at < 179*time.Second; at += time.Second {
			for what, l := range map[string]inspect.Lock{"Show": show(t, in, "a"), "Locks": all(t, look(t, in), "")[0]} {
				if !l.Held || l.First().Service != "mailer" || l.First().Holder.Client != owner.ID() {
					t.Fatalf("%s after %v: %+v", what, at, l)
				}
				late, silent := at > 80*time.Second, at > 52*time.Second
				if early := at < 49*time.Second; early && (l.First().Late > 0 || l.First().Silent) || late && l.First().Late == 0 || silent && !l.First().Silent {
					t.Fatalf("%s after %v: late %v, silent %v", what, at, l.First().Late, l.First().Silent)
				}
			}
			time.Sleep(time.Second)
		}
		if l := show(t, in, "a"); l.First().Late < 90*time.Second || l.First().Late > 110*time.Second {
			t.Errorf("late by %v; the renewal was due after 60s, 180s have passed", l.First().Late)
		}
		time.Sleep(2 * time.Second)
		if l := show(t, in, "a"); l.Held {
			t.Errorf("after its end: %+v", l)
		}
		v := look(t, in)
		if len(v.Processes) != 1 || !v.Processes[0].Silent || v.Processes[0].Seen < 2*time.Minute || v.Processes[0].Up > time.Minute {
			t.Errorf("processes: %+v", v.Processes)
		}
		if l := all(t, v, ""); len(l) != 0 {
			t.Errorf("locks: %+v", l)
		}
	})
}

// A lease of the default TTL that nobody renews is late well before it ends.
func TestLateOfAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		owner := process(t, server, "")
		hold(t, owner, "a", nil)
		time.Sleep(3 * time.Second)
		kill(server, owner)
		time.Sleep(9 * time.Second)
		if l := show(t, inspector(t, server, ""), "a"); l.First().Late < 4*time.Second || l.First().Late > 6*time.Second || l.First().Silent {
			t.Errorf("12s after the grant of 15s: late %v, silent %v", l.First().Late, l.First().Silent)
		}
	})
}

// A lease that was given away is nobody's to renew: neither late nor silent,
// whether its giver was closed or killed.
func TestDetached(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memory.New()
				in := inspector(t, server, "")
				giver := service(t, server, zamok.Config{Name: "deploy"})
				lease := hold(t, giver, "a", nil)
				if err := lease.Extend(t.Context(), 10*time.Minute); err != nil {
					t.Fatal(err)
				}
				if _, err := lease.Detach(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				if how == "killed" {
					kill(server, giver)
				} else if err := giver.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(9 * time.Minute)
				for what, l := range map[string]inspect.Lock{"Show": show(t, in, "a"), "Locks": all(t, look(t, in), "")[0]} {
					if !l.Held || l.First().Service != "deploy" || !l.First().Detached || l.First().Late != 0 || l.First().Silent {
						t.Errorf("%s: %+v", what, l)
					}
				}
				p := look(t, in).Processes
				if len(p) != 1 || p[0].Left != (how == "closed") || p[0].Silent != (how == "killed") {
					t.Errorf("processes: %+v", p)
				}
			})
		})
	}
}

// A lease that another process extended is named by both; what its own client says
// of it counts, and when that has gone, the other's.
func TestExtendedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		giver, helper := service(t, server, zamok.Config{Name: "giver"}), service(t, server, zamok.Config{Name: "helper"})
		lease := hold(t, giver, "a", &zamok.MutexConfig{Reason: "moving"})
		token, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if err := giver.Close(); err != nil {
			t.Fatal(err)
		}
		if err := helper.Mutex("a", nil).ExtendToken(t.Context(), token, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if l := all(t, look(t, in), ""); len(l) != 1 || !l[0].First().Detached || l[0].First().Service != "giver" || l[0].First().Reason != "moving" {
			t.Errorf("%+v", l)
		}
		if err := helper.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if l := all(t, look(t, in), ""); len(l) != 1 || !l[0].Held || !l[0].First().Detached || l[0].First().Silent || l[0].First().Late != 0 {
			t.Errorf("after half an hour: %+v", l)
		}
	})
}

// What is wrong with a presence hides no lock: it only leaves out who it is.
func TestBadPresence(t *testing.T) {
	for what, spoil := range map[string]func(t *testing.T, s *memory.Server, c *zamok.Client){
		"gone":         func(_ *testing.T, s *memory.Server, c *zamok.Client) { s.Del(keys.Proc("", c.ID()), keys.Procs("")) },
		"empty":        func(t *testing.T, s *memory.Server, c *zamok.Client) { s.Set(keys.Proc("", c.ID()), "", time.Hour) },
		"garbage":      func(t *testing.T, s *memory.Server, c *zamok.Client) { announce(t, s, c.ID(), `{"host":7}`, time.Hour) },
		"another type": func(_ *testing.T, s *memory.Server, c *zamok.Client) { s.SetList(keys.Proc("", c.ID())) },
		"an empty one": func(t *testing.T, s *memory.Server, c *zamok.Client) { announce(t, s, c.ID(), `{}`, time.Hour) },
		"no list":      func(_ *testing.T, s *memory.Server, _ *zamok.Client) { s.SetList(keys.Procs("")) },
		"silent": func(t *testing.T, s *memory.Server, c *zamok.Client) {
			announce(t, s, c.ID(), proc.Record{Service: "x", Holding: 1, TTLMS: 1e6}.Text(), 100*time.Second)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memory.New()
				owner := process(t, server, "")
				lease := hold(t, owner, "a", &zamok.MutexConfig{TTL: 10 * time.Minute})
				time.Sleep(time.Minute + 500*time.Millisecond) // between two announcements
				spoil(t, server, owner)
				l := show(t, inspector(t, server, ""), "a")
				if !l.Held || l.First().Holder.Client != owner.ID() || l.First().Fence != lease.Fence() || l.Err != nil {
					t.Errorf("%+v", l)
				}
				if l.First().Silent != (what == "silent") || l.First().Late != 0 {
					t.Errorf("silent %v, late %v", l.First().Silent, l.First().Late)
				}
			})
		})
	}
}

// A lock with a key of its own is found by that key, and has the name that its
// holder gives it.
func TestShowKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "app:")
		owner := process(t, server, "app:")
		lease := hold(t, owner, "report", &zamok.MutexConfig{Key: "old-{report}"})
		plain := hold(t, owner, "plain", nil)
		server.Set("foreign", "x", time.Minute)
		long := strings.Repeat("k", 600)
		server.Set(long, "x", time.Minute)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		for _, want := range []struct {
			key, name string
			fence     int64
		}{
			{"old-{report}", "report", lease.Fence()}, {"app:lock:plain", "plain", plain.Fence()}, {"foreign", "foreign", 0}, {long, long, 0},
		} {
			l, err := in.ShowKey(t.Context(), want.key)
			if err != nil || !l.Held || l.Key != want.key || l.Name != want.name || l.First().Fence != want.fence {
				t.Errorf("%.20q: %+v, %v", want.key, l, err)
			}
		}
		if l, err := in.ShowKey(t.Context(), "app:lock:free"); err != nil || l.Held || l.Name != "free" {
			t.Errorf("a free one: %+v, %v", l, err)
		}
	})
}

// Show costs two requests, and the third only for a lease that was not renewed
// for a while, however many processes there are.
func TestShowCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, process(t, server, ""), "a", nil)
		hold(t, process(t, server, ""), "long", &zamok.MutexConfig{TTL: time.Hour})
		time.Sleep(20*time.Second + time.Second)
		for name, rosters := range map[string]int{"a": 0, "long": 1, "free": 0} {
			before := server.Calls()
			show(t, in, name)
			after := server.Calls()
			if n := after["roster"] - before["roster"]; n != rosters {
				t.Errorf("%s: the list of processes was read %d times, want %d", name, n, rosters)
			}
			if n := after["whois"] - before["whois"]; n > 1 || name == "free" && n > 0 {
				t.Errorf("%s: whois ran %d times", name, n)
			}
		}
	})
}
