package inspect_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/inspect"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
)

// What is said of a break is checked, cleaned and kept.
func TestBreakConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, process(t, server, ""), "a", nil)
		l := show(t, in, "a")
		synctest.Wait()
		before := server.Calls()["break"]
		for _, c := range []struct {
			lock  inspect.Lock
			cfg   *inspect.BreakConfig
			field string
		}{
			{l, nil, "BreakConfig.Why"}, {l, &inspect.BreakConfig{Why: " \n\t"}, "BreakConfig.Why"},
			{l, &inspect.BreakConfig{Why: strings.Repeat("x", 257)}, "BreakConfig.Why"},
			{l, &inspect.BreakConfig{By: strings.Repeat("x", 129), Why: "x"}, "BreakConfig.By"},
			{inspect.Lock{Name: "free"}, &inspect.BreakConfig{Why: "x"}, "Lock"}, {inspect.Lock{}, &inspect.BreakConfig{Why: "x"}, "Lock"},
			{inspect.Lock{Held: true, Holding: 1, Holders: []inspect.Holder{{}}}, &inspect.BreakConfig{Why: "x"}, "Lock.Key"},
			{l, &inspect.BreakConfig{Why: "x", Token: "z1/elsewhere/1/x/1"}, "BreakConfig.Token"},
		} {
			var ce *zamok.ConfigError
			if _, err := in.Break(t.Context(), c.lock, c.cfg); !errors.As(err, &ce) || ce.Field != c.field {
				t.Errorf("%v; want a *ConfigError of %s", err, c.field)
			}
		}
		if n := server.Calls()["break"] - before; n != 0 {
			t.Errorf("%d were sent", n)
		}
		long := strings.Repeat("é", 128)
		if b, err := in.Break(t.Context(), l, &inspect.BreakConfig{By: "a!b\r\n\x1b[1mc\xff", Why: long}); err != nil || b.By != "a_b   [1mc\uFFFD" || b.Why != long {
			t.Errorf("%+v, %v", b, err)
		}
		host, _ := os.Hostname()
		l = show(t, in, "a")
		if b, err := in.Break(t.Context(), l, &inspect.BreakConfig{Why: "two\nlines", Now: true}); err != nil || !strings.HasSuffix(b.By, "@"+host) || len(b.By) < len(host)+2 || b.Why != "two lines" {
			t.Errorf("%+v, %v", b, err)
		}
	})
}

// The break counts, whether or not it can be written down.
func TestBreakWithoutAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		hold(t, process(t, server, ""), "a", nil)
		server.SetList(keys.Events(""))
		var se *driver.ServerError
		if b, err := in.Break(t.Context(), show(t, in, "a"), &inspect.BreakConfig{Why: "x", Now: true}); err != nil || !errors.As(b.AuditErr, &se) || show(t, in, "a").Held {
			t.Errorf("%+v, %v", b, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		server.Del(keys.Events(""))
		hold(t, process(t, server, ""), "b", nil)
		l := show(t, in, "b")
		server.Intercept(func(c driver.Call) memory.Fault {
			if c.Script == lua.Note {
				cancel() // ctx ends between the break and the note
			}
			return memory.Fault{}
		})
		if b, err := in.Break(ctx, l, &inspect.BreakConfig{Why: "x", Now: true}); err != nil || b.AuditErr != nil || server.Type(keys.Events("")) != "stream" {
			t.Errorf("%+v, %v", b, err)
		}
	})
}

// When the reply is lost nobody knows, and breaking it again tells: it does not hit
// who has come meanwhile.
func TestBreakUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New()
		in := inspector(t, server, "")
		lease := hold(t, process(t, server, ""), "a", nil)
		l := show(t, in, "a")
		cfg := &inspect.BreakConfig{By: "alice", Why: "x", Now: true}
		server.Intercept(func(c driver.Call) memory.Fault { return memory.Fault{DropReply: c.Script == lua.Break} })
		if _, err := in.Break(t.Context(), l, cfg); err == nil || !strings.Contains(err.Error(), "not known whether") {
			t.Errorf("%v", err)
		}
		server.Intercept(nil)
		next := hold(t, process(t, server, ""), "a", nil)
		b, err := in.Break(t.Context(), l, cfg)
		if err != nil || b.Asked || b.Holder.Token != lease.Token() || b.Next.Token != next.Token() || b.NextFence != next.Fence() {
			t.Errorf("%+v, %v", b, err)
		}
		if err := next.Check(t.Context()); err != nil {
			t.Errorf("the next has lost it: %v", err)
		}
		if list := events(t, in, "", 0); list[0].Kind != inspect.EventBroken || list[0].Holder.Token != lease.Token() || list[0].By != "alice" {
			t.Errorf("%+v", list)
		}
	})
}
