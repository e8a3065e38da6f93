package demo

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/memory"
)

func config(out *bytes.Buffer) Config {
	m := memory.New()
	Twins(m)
	return Config{Driver: m, Where: "a server in memory", Prefix: "demo:", For: 8 * time.Second, Out: out}
}

func TestAllActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began := time.Now()
		good, err := Run(t.Context(), config(&out))
		if err != nil || !good {
			t.Fatalf("good %v, err %v\n%s", good, err, &out)
		}
		if n := strings.Count(out.String(), "\nok: "); n != len(acts()) {
			t.Errorf("%d lines begin with ok, want %d\n%s", n, len(acts()), &out)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Error("colour without Config.Colour")
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v, 8 s were asked for", took)
		}
	})
}

func TestColour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := config(&out)
		c.Colour = true
		if good, err := Run(t.Context(), c); err != nil || !good {
			t.Fatalf("good %v, err %v", good, err)
		}
		if !strings.Contains(out.String(), "\x1b[1;32mok:\x1b[0m") {
			t.Errorf("no green ok in %q", &out)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if good, err := Run(ctx, config(&out)); good || err == nil {
			t.Errorf("good %v, err %v\n%s", good, err, &out)
		}
	})
}

// TestSabotage spoils the server in one way for each act, and the act must see
// it. A demo that cannot fail shows nothing.
func TestSabotage(t *testing.T) {
	cases := map[int]struct {
		does    string
		spoiled func() func(actor string, d driver.Driver) driver.Driver
		says    string
	}{
		1: {"grants to everybody", grantsTwice, "at the same time"},
		2: {"loses the message that wakes", losesMessages, "was not handed the lock"},
		3: {"serves the last first", breaksOrder, "were served as fifth"},
		4: {"never expires", neverExpires, "had not come back"},
		5: {"releases without looking at the token", ignoresTokens("release"), "took the lock from the rival"},
		6: {"runs guarded scripts without looking at the token", ignoresTokens("guard:" + writeScript), "late write was applied"},
		7: {"renews nothing", renewsNothing, "rival got the lock while the job was at work"},
	}
	for i, a := range acts() {
		c, there := cases[i+1]
		if !there {
			t.Errorf("no sabotage for act %d, %s", i+1, a.title)
			continue
		}
		t.Run(c.does, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				conf := config(&out)
				conf.Sabotage = c.spoiled()
				p := &printer{w: &out, began: time.Now()}
				var closing sync.WaitGroup
				v := play(t.Context(), conf, p, i+1, time.Second, a, &closing)
				closing.Wait()
				if v.ok || !strings.Contains(v.text, c.says) {
					t.Errorf("ok %v, %q; want a failure with %q\n%s", v.ok, v.text, c.says, &out)
				}
			})
		})
	}
	t.Run("also: a crash that frees the lock too early", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			conf := config(&out)
			conf.Sabotage = expiresEarly
			var closing sync.WaitGroup
			v := play(t.Context(), conf, &printer{w: &out, began: time.Now()}, 4, time.Second, acts()[3], &closing)
			closing.Wait()
			if v.ok || !strings.Contains(v.text, "before its TTL") {
				t.Errorf("ok %v, %q\n%s", v.ok, v.text, &out)
			}
		})
	})
	t.Run("also: a failure is in the exit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			conf := config(&out)
			conf.Sabotage = renewsNothing()
			good, err := Run(t.Context(), conf)
			if good || err != nil || !strings.Contains(out.String(), "FAILED: ") {
				t.Errorf("good %v, err %v\n%s", good, err, &out)
			}
		})
	})
}

// spoiler changes calls on their way, or answers them itself.
type spoiler struct {
	driver.Driver
	eval func(ctx context.Context, call driver.Call) (any, error)
}

func (s *spoiler) Eval(ctx context.Context, call driver.Call) (any, error) { return s.eval(ctx, call) }

func (s *spoiler) EvalAll(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { results[i].Reply, results[i].Err = s.eval(ctx, calls[i]) })
	}
	all.Wait()
	return results
}

// changing returns a sabotage that has f change each call.
func changing(f func(actor string, call *driver.Call)) func(string, driver.Driver) driver.Driver {
	return func(actor string, d driver.Driver) driver.Driver {
		return &spoiler{d, func(ctx context.Context, call driver.Call) (any, error) {
			call.Keys, call.Args = append([]string{}, call.Keys...), append([]string{}, call.Args...)
			f(actor, &call)
			return d.Eval(ctx, call)
		}}
	}
}

func grantsTwice() func(string, driver.Driver) driver.Driver {
	return changing(func(actor string, call *driver.Call) { call.Keys[0] += actor })
}

func losesMessages() func(string, driver.Driver) driver.Driver {
	return func(_ string, d driver.Driver) driver.Driver { return &deaf{d} }
}

type deaf struct{ driver.Driver }

func (d *deaf) Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(driver.Event)) (driver.Subscription, error) {
	return d.Driver.Subscribe(ctx, limit, channel, func(e driver.Event) {
		if e.Kind != driver.Message {
			handle(e)
		}
	})
}

func breaksOrder() func(string, driver.Driver) driver.Driver {
	var ticket atomic.Int64
	ticket.Store(1000)
	tickets := sync.Map{}
	return changing(func(_ string, call *driver.Call) {
		if call.Script.Name() == "acquire" && call.Args[2] != "" {
			t, _ := tickets.LoadOrStore(call.Args[0], ticket.Add(-1))
			call.Args[3] = time.Duration(t.(int64)).String()
			call.Args[3] = strings.TrimSuffix(call.Args[3], "ns")
		}
	})
}

func neverExpires() func(string, driver.Driver) driver.Driver {
	return changing(func(_ string, call *driver.Call) {
		if call.Script.Name() == "acquire" {
			call.Args[1] = "3600000"
		}
	})
}

func expiresEarly(actor string, d driver.Driver) driver.Driver {
	return changing(func(actor string, call *driver.Call) {
		if call.Script.Name() == "acquire" && actor == "owner" {
			call.Args[1] = "400"
		}
	})(actor, d)
}

// ignoresTokens gives a script the token of whoever was granted the lock last.
func ignoresTokens(script string) func() func(string, driver.Driver) driver.Driver {
	return func() func(string, driver.Driver) driver.Driver {
		var holder atomic.Value
		return func(_ string, d driver.Driver) driver.Driver {
			return &spoiler{d, func(ctx context.Context, call driver.Call) (any, error) {
				if token, ok := holder.Load().(string); ok && call.Script.Name() == script {
					call.Args = append([]string{token}, call.Args[1:]...)
				}
				reply, err := d.Eval(ctx, call)
				if list, ok := reply.([]any); ok && call.Script.Name() == "acquire" && list[0] == "granted" {
					holder.Store(call.Args[0])
				}
				return reply, err
			}}
		}
	}
}

func renewsNothing() func(string, driver.Driver) driver.Driver {
	return func(_ string, d driver.Driver) driver.Driver {
		return &spoiler{d, func(ctx context.Context, call driver.Call) (any, error) {
			if call.Script.Name() == "renew" {
				return []any{"renewed", "1", int64(1000), int64(0), int64(0), int64(0), ""}, nil
			}
			return d.Eval(ctx, call)
		}}
	}
}
