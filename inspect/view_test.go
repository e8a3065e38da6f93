package inspect_test

import (
	"context"
	"errors"
	"fmt"
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

func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		if v := look(t, in); len(v.Processes) != 0 || v.Time.IsZero() || len(all(t, v, "")) != 0 {
			t.Errorf("an empty server: %+v", v)
		}
		mailer := service(t, server, zamok.Config{Name: "mailer", Version: "v2", Command: "mailer x"})
		hold(t, mailer, "b", nil)
		hold(t, mailer, "a", nil)
		hold(t, mailer, "own", &zamok.MutexConfig{Key: "{own}key"})
		report := service(t, server, zamok.Config{Name: "report"})
		go report.Mutex("a", nil).Lock(t.Context())
		go report.Mutex("foreign", nil).Lock(t.Context())
		server.Set("lock:foreign", "x", time.Hour)
		server.Set("lock:nobody waits", "x", time.Hour)
		time.Sleep(3 * time.Second)
		v := look(t, in)
		if got := names(all(t, v, "")); got != "a b foreign own" {
			t.Errorf("locks %q", got)
		}
		if got := names(all(t, v, "[a-b]")); got != "a b" {
			t.Errorf("locks for a pattern: %q", got)
		}
		byName := map[string]inspect.Process{}
		for _, p := range v.Processes {
			byName[p.Service] = p
		}
		m, r := byName["mailer"], byName["report"]
		if m.ID != mailer.ID() || m.Version != "v2" || m.Command != "mailer x" || m.Holding != 3 || m.Waiting != 0 || m.PID == 0 || m.Host == "" {
			t.Errorf("%+v", m)
		}
		if r.ID != report.ID() || r.Holding != 0 || r.Waiting != 2 || r.Silent || r.Left || r.Seen > 3*time.Second || r.Up != 3*time.Second {
			t.Errorf("%+v", r)
		}
		if len(byName) != 2 || v.Unnamed != 0 || v.Time.Sub(time.UnixMicro(server.Now())).Abs() > time.Millisecond {
			t.Errorf("%+v", v)
		}
	})
}

// The list comes in pipelines of 256, each when what was before it is used up.
func TestLocksAreStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		for n := range 600 {
			hold(t, c, fmt.Sprintf("n-%03d", n), nil)
		}
		time.Sleep(2 * time.Second)
		v := look(t, in)
		before := server.Calls()
		seen := 0
		for l, err := range v.Locks(t.Context(), "") {
			if err != nil || l.Name != fmt.Sprintf("n-%03d", seen) || l.First().Service == "" {
				t.Fatalf("%d: %+v, %v", seen, l, err)
			}
			read := server.Calls()["inspect"] - before["inspect"]
			if want := min(seen/256*256+256, 600); read != want {
				t.Fatalf("at the %dth, %d were read, want %d", seen, read, want)
			}
			seen++
		}
		if seen != 600 || server.Calls()["whois"] != before["whois"] {
			t.Errorf("%d, of 600, and whois ran %d times", seen, server.Calls()["whois"]-before["whois"])
		}
		for range v.Locks(t.Context(), "") { // again, and not to its end
			break
		}
		if read := server.Calls()["inspect"] - before["inspect"]; read != 600+256 {
			t.Errorf("%d were read, want one pipeline more", read)
		}
	})
}

// A holder that began after the view is asked who it is, once.
func TestLocksAskStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		old := service(t, server, zamok.Config{Name: "old"})
		var leases []*zamok.Lease
		for n := range 300 {
			leases = append(leases, hold(t, old, fmt.Sprintf("n-%03d", n), nil))
		}
		time.Sleep(2 * time.Second)
		v := look(t, in)
		fresh := service(t, server, zamok.Config{Name: "fresh"})
		for n, l := range leases {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n%2 == 0 {
				hold(t, fresh, l.Name(), nil)
			}
		}
		time.Sleep(2 * time.Second)
		before := server.Calls()["whois"]
		locks := all(t, v, "")
		for _, l := range locks {
			if l.First().Service != "fresh" || l.First().TTL != 15*time.Second {
				t.Fatalf("%+v", l)
			}
		}
		if n := server.Calls()["whois"] - before; len(locks) != 150 || n != 1 {
			t.Errorf("%d locks, want the 150 that are held; whois ran %d times, want once", len(locks), n)
		}
	})
}

func TestUnnamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		r := proc.Record{Service: "x", TTLMS: 90000, Holding: 21000, Waiting: 7, Held: []proc.Lease{{Name: "a", Token: "1"}}, Waits: []proc.Wait{{Name: "a", Token: "2"}}}
		announce(t, server, "h/1/a", r.Text(), 90*time.Second)
		r.Holding, r.Waiting = 0, 0 // less than it names
		announce(t, server, "h/1/b", r.Text(), 90*time.Second)
		if v := look(t, inspector(t, server, "")); v.Unnamed != 20999+6 {
			t.Errorf("%d are not named, want 21005", v.Unnamed)
		}
	})
}

// Texts that are missing, or that nobody can read, are left out; so is nothing else.
func TestLookLeavesOutGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, process(t, server, ""), "good", nil)
		time.Sleep(time.Second)
		announce(t, server, "garbage", "][", time.Hour)
		announce(t, server, "", "[]", time.Hour)
		announce(t, server, "list", "x", time.Hour)
		server.SetList(keys.Proc("", "list"))
		server.ZAdd(keys.Procs(""), "no text", float64(server.Now()/1000+60000))
		bad := proc.Record{Service: "odd", Held: []proc.Lease{
			{Name: "", Token: "1"}, {Name: "nul\x00", Token: "2"}, {Name: proc.Bytes(strings.Repeat("x", 600))}, {Name: "a", Key: "a}b{", Token: "////"},
			{Name: "b\xff", Token: ""},
		}}
		announce(t, server, "h/1/odd", bad.Text(), time.Hour)
		server.Set("lock:b\xff", "x", time.Hour)
		v := look(t, in)
		if len(v.Processes) != 2 {
			t.Errorf("processes: %+v", v.Processes)
		}
		locks := all(t, v, "")
		var unreadable int
		for _, l := range locks {
			if l.Err != nil {
				unreadable++
			}
		}
		if unreadable != 4 || len(locks) != 6 || names(all(t, v, "good")) != "good" || names(all(t, v, "b?")) != "b\xff" {
			t.Errorf("%d locks, %d of them cannot be read: %q", len(locks), unreadable, names(locks))
		}
	})
}

// A view that might lack somebody is none: an error that is not about one text
// alone is one of Look.
func TestLookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		for range 3 {
			l := hold(t, process(t, server, ""), "n", nil)
			<-time.After(time.Millisecond) // it has said who it is
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		boom := errors.New("boom")
		for _, script := range []*driver.Script{lua.Roster, lua.Whois} {
			for _, bad := range []error{boom, &driver.ServerError{Text: "LOADING Redis is loading"}} {
				n := 0
				server.Intercept(func(c driver.Call) memory.Fault {
					if c.Script == script {
						if n++; n == 2 || script == lua.Roster {
							return memory.Fault{Err: bad}
						}
					}
					return memory.Fault{}
				})
				if v, err := in.Look(t.Context()); !errors.Is(err, bad) {
					t.Errorf("%s fails with %v: %+v, %v", script.Name(), bad, v, err)
				}
			}
		}
		server.Intercept(nil)
	})
}

func TestLocksEndWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		for n := range 600 {
			hold(t, c, fmt.Sprintf("n-%03d", n), nil)
		}
		time.Sleep(2 * time.Second)
		v := look(t, in)
		run := func(ctx context.Context) (good, bad int, last error) {
			for l, err := range v.Locks(ctx, "") {
				switch {
				case err != nil:
					last = errors.Join(last, err)
				case l.Err != nil:
					bad++
				default:
					good++
				}
				if good == 300 {
					if cancel, ok := ctx.Value(t).(func()); ok {
						cancel()
					}
				}
			}
			return good, bad, last
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		if good, bad, err := run(context.WithValue(ctx, t, func() { cancel(enough) })); good != 512 || bad != 0 || !errors.Is(err, enough) {
			t.Errorf("ctx ended at the 300th: %d, %d, %v; want the pipeline to its end and one error", good, bad, err)
		}
		boom := errors.New("boom")
		fail := func(which func(n int) bool) {
			n := 0
			server.Intercept(func(c driver.Call) memory.Fault {
				if c.Script == lua.Inspect {
					if n++; which(n - 1) {
						return memory.Fault{Err: boom}
					}
				}
				return memory.Fault{}
			})
		}
		fail(func(n int) bool { return n == 7 })
		if good, bad, err := run(t.Context()); good != 599 || bad != 1 || err != nil {
			t.Errorf("one fails: %d, %d, %v; want one lock with an error", good, bad, err)
		}
		fail(func(n int) bool { return n >= 256 })
		if good, bad, err := run(t.Context()); good != 256 || bad != 0 || !errors.Is(err, boom) {
			t.Errorf("the server is gone after the first pipeline: %d, %d, %v; want one error", good, bad, err)
		}
		server.Intercept(nil)
	})
}

// A view may be used by several at once.
func TestViewIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		hold(t, c, "a", nil)
		time.Sleep(2 * time.Second)
		v := look(t, in)
		hold(t, process(t, server, ""), "b", nil)
		done := make(chan int)
		for range 8 {
			go func() {
				n := 0
				for range v.Locks(context.Background(), "") {
					n++
				}
				done <- n
			}()
		}
		for range 8 {
			if n := <-done; n != 1 {
				t.Errorf("%d locks, want 1", n)
			}
		}
	})
}

// A lock whose key belongs to a name has that name, whatever another process calls it.
func TestLocksKeepTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, service(t, server, zamok.Config{Name: "honest"}), "nightly", nil)
		alias := proc.Record{TTLMS: 90000, Holding: 1, Held: []proc.Lease{{Name: "zzz", Key: "lock:nightly", Token: "1"}}}
		announce(t, server, "a/1/a", alias.Text(), 90*time.Second)
		time.Sleep(2 * time.Second)
		if got := names(all(t, look(t, in), "")); got != "nightly" {
			t.Errorf("locks %q", got)
		}
		r, err := in.Check(t.Context(), &inspect.CheckConfig{Pattern: "night*"})
		if err != nil || r.Held != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
