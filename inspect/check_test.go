package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
)

func check(t *testing.T, in *inspect.Inspector, cfg *inspect.CheckConfig) *inspect.Report {
	t.Helper()
	r, err := in.Check(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range r.Counts {
		sum += n
	}
	if sum != len(r.Problems) || len(r.Counts) != 8 {
		t.Errorf("%d problems, counted as %v", len(r.Problems), r.Counts)
	}
	return r
}

// brief is a report's problems: NAME KIND, with ! when critical.
func brief(r *inspect.Report) string {
	var list []string
	for _, p := range r.Problems {
		s := p.Lock.Name + " " + p.Kind
		if p.Critical {
			s += "!"
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// wait has a client wait for a lock, under ctx.
func wait(ctx context.Context, t *testing.T, c *zamok.Client, name string, cfg *zamok.MutexConfig) {
	t.Helper()
	go func() {
		if l, err := c.Mutex(name, cfg).Lock(ctx); err == nil {
			l.Release(context.WithoutCancel(ctx))
		}
	}()
	synctest.Wait()
}

func TestCheckNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		if r := check(t, in, nil); len(r.Problems) != 0 || r.Held != 0 || r.Processes != 0 || r.Critical() {
			t.Errorf("an empty server: %+v", r)
		}
		c := process(t, server, "")
		hold(t, c, "a", nil)
		hold(t, c, "b", nil)
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait(ctx, t, process(t, server, ""), "a", nil)
		wait(ctx, t, process(t, server, ""), "a", nil)
		time.Sleep(5 * time.Second)
		r := check(t, in, nil)
		if len(r.Problems) != 0 || r.Held != 2 || r.Waiting != 2 || r.Processes != 3 || r.Silent != 0 || r.LongestHold != 15*time.Second || r.LongestWait != 5*time.Second {
			t.Errorf("%+v", r)
		}
		if r.Time.UnixMilli() != server.Now()/1000 || r.Unnamed != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestCheckLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		owner := service(t, server, zamok.Config{Name: "mailer"})
		hold(t, owner, "b", nil)
		hold(t, owner, "a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait(ctx, t, service(t, server, zamok.Config{Name: "report"}), "a", nil)
		time.Sleep(3 * time.Minute)
		hold(t, owner, "new", nil)
		time.Sleep(2 * time.Second)
		for cfg, want := range map[inspect.CheckConfig]string{
			{}:                                       "",
			{Held: time.Minute}:                      "a held, b held",
			{Held: time.Minute, Waited: time.Minute}: "a held, a waited, b held",
			{Held: time.Hour, Waited: time.Hour}:     "",
			{Held: time.Minute, Pattern: "b"}:        "b held",
			{Waited: time.Minute, Pattern: "b"}:      "",
		} {
			r := check(t, in, &cfg)
			if got := brief(r); got != want || r.Critical() {
				t.Errorf("%+v: %q, want %q", cfg, got, want)
			}
			if held := r.Held; (held != 3) == (cfg.Pattern == "") {
				t.Errorf("%+v: %d are held", cfg, held)
			}
			for _, p := range r.Problems {
				if !strings.Contains(p.Text, "mailer on ") || p.Kind == inspect.ProblemWaited && !strings.HasPrefix(p.Text, "report on ") || p.Deadlock != nil {
					t.Errorf("%s: %q", p.Kind, p.Text)
				}
			}
		}
	})
}

// A key without a TTL is critical, be it a foreign one or one of ours whose TTL
// was taken off.
func TestCheckNoTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, process(t, server, ""), "z", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server.Set("lock:foreign", "x", 0)
		wait(ctx, t, process(t, server, ""), "foreign", nil)
		lease := hold(t, process(t, server, ""), "ours", nil)
		time.Sleep(2 * time.Second)
		server.Set("lock:ours", fmt.Sprint(lease.Token(), ":", lease.Fence()), 0)
		r := check(t, in, nil)
		if got := brief(r); got != "foreign no-ttl!, ours no-ttl!" || !r.Critical() {
			t.Errorf("%q", got)
		}
		server.Del("lock:foreign", "lock:ours")
	})
}

// A dead holder is a warning, and critical when others wait for it.
func TestCheckDeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		dead := process(t, server, "")
		for _, name := range []string{"waited for", "free otherwise", "short"} {
			ttl := 10 * time.Minute
			if name == "short" {
				ttl = 60 * time.Second
			}
			hold(t, dead, name, &zamok.MutexConfig{TTL: ttl})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait(ctx, t, process(t, server, ""), "waited for", nil)
		time.Sleep(2 * time.Second)
		kill(server, dead)
		time.Sleep(29 * time.Second)
		if got := brief(check(t, in, nil)); got != "short late" {
			t.Errorf("after 29s: %q", got)
		}
		time.Sleep(27 * time.Second)
		r := check(t, in, nil)
		if got := brief(r); got != "waited for silent!, free otherwise silent, short silent" || r.Silent != 1 || r.Processes != 1 {
			t.Errorf("after 56s: %q, %+v", got, r)
		}
		for _, p := range r.Problems {
			if !strings.Contains(p.Text, "it ends in ") {
				t.Errorf("%q", p.Text)
			}
		}
	})
}

// What a server does not tell is a problem and hides nothing else.
func TestCheckUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		hold(t, c, "a", nil)
		hold(t, c, "b", nil)
		time.Sleep(2 * time.Second)
		server.SetList("lock:a")
		r := check(t, in, nil)
		if got := brief(r); got != "a unreadable" || r.Held != 1 || !strings.Contains(r.Problems[0].Text, "WRONGTYPE") {
			t.Errorf("%q, %+v", got, r)
		}
		server.Intercept(func(call driver.Call) memory.Fault {
			return memory.Fault{DropRequest: call.Keys[0] == keys.Procs("")}
		})
		if r, err := in.Check(t.Context(), nil); err == nil {
			t.Errorf("nobody could be asked: %+v", r)
		}
		server.Intercept(nil)
	})
}

// Two that took their locks in different orders wait for each other: sure when the
// contexts say so. The process that waits in circles with itself is told too.
func TestCheckDeadlock(t *testing.T) {
	for _, sure := range []bool{true, false} {
		t.Run(fmt.Sprint("sure=", sure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memory.New()
				in := inspector(t, server, "")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				one, two := service(t, server, zamok.Config{Name: "one"}), service(t, server, zamok.Config{Name: "two"})
				a, b := hold(t, one, "a", nil), hold(t, two, "b", nil)
				underA, underB := ctx, ctx
				if sure {
					underA, underB = a.Context(), b.Context()
				}
				time.Sleep(time.Second)
				wait(underA, t, one, "b", nil)
				wait(underB, t, two, "a", nil)
				time.Sleep(3 * time.Second)
				r := check(t, in, nil)
				if got, want := brief(r), map[bool]string{true: "a deadlock!", false: ""}[sure]; got != want {
					t.Errorf("after 3s: %q, want %q", got, want)
				}
				time.Sleep(8 * time.Second)
				r = check(t, in, nil)
				if got, want := brief(r), map[bool]string{true: "a deadlock!", false: "a deadlock"}[sure]; got != want {
					t.Fatalf("after 11s: %q, want %q", got, want)
				}
				d := r.Problems[0].Deadlock
				if d == nil || d.Sure != sure || len(d.Members) != 2 || d.Members[0].Service != "one" || d.Members[0].Waits.Service != "one" || d.Members[1].Service != "two" {
					t.Errorf("%+v", d)
				}
				if text := r.Problems[0].Text; strings.Contains(text, "perhaps") == sure || !strings.Contains(text, `one on `) {
					t.Errorf("%q", text)
				}
				if got := brief(check(t, in, &inspect.CheckConfig{Pattern: "b"})); !strings.HasPrefix(got, "a deadlock") {
					t.Errorf("for b: %q", got)
				}
				if got := brief(check(t, in, &inspect.CheckConfig{Pattern: "c"})); got != "" {
					t.Errorf("for c: %q", got)
				}
			})
		})
	}
}

// A process that runs under a lease and waits for the same name waits for itself.
func TestCheckWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lease := hold(t, process(t, server, ""), "a", nil)
		wait(ctx, t, service(t, server, zamok.Config{Name: "child", Under: lease.Token()}), "a", nil)
		time.Sleep(2 * time.Second)
		r := check(t, inspector(t, server, ""), nil)
		if got := brief(r); got != "a deadlock!" || len(r.Problems[0].Deadlock.Members) != 1 {
			t.Errorf("%q", got)
		}
	})
}

// A busy process, whose goroutines want what others of it have, is no problem.
func TestCheckBusyProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		c := process(t, server, "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var busy sync.WaitGroup
		for n := range 40 {
			busy.Go(func() {
				m := c.Mutex(fmt.Sprint("n", n%4), nil)
				for ctx.Err() == nil {
					_ = m.Do(ctx, func(context.Context) error { time.Sleep(300 * time.Millisecond); return nil })
				}
			})
		}
		for range 50 {
			time.Sleep(901 * time.Millisecond)
			if r := check(t, in, nil); len(r.Problems) != 0 {
				t.Errorf("%+v", r.Problems[0])
			}
		}
		cancel()
		busy.Wait()
	})
}
