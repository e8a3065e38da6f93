package parts

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/zamokgoredis"
	"github.com/zamok-go/zamok/zamokrueidis"
)

const compareAndDelete = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

// raw is what one writes by hand.
type raw struct {
	set func(ctx context.Context, key, token string) error
	del func(ctx context.Context, key, token string) error
}

// library opens a client on its default options.
type library struct {
	name string
	open func(b *testing.B, addr string) (driver.Driver, raw)
}

var libraries = []library{
	{"goredis", func(b *testing.B, addr string) (driver.Driver, raw) {
		c := redis.NewClient(&redis.Options{Addr: addr})
		b.Cleanup(func() { _ = c.Close() })
		script := redis.NewScript(compareAndDelete)
		return zamokgoredis.New(c), raw{
			set: func(ctx context.Context, key, token string) error {
				return c.SetNX(ctx, key, token, 15*time.Second).Err()
			},
			del: func(ctx context.Context, key, token string) error {
				return script.Run(ctx, c, []string{key}, token).Err()
			},
		}
	}},
	{"rueidis", func(b *testing.B, addr string) (driver.Driver, raw) {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		script := rueidis.NewLuaScript(compareAndDelete)
		return zamokrueidis.New(c), raw{
			set: func(ctx context.Context, key, token string) error {
				return c.Do(ctx, c.B().Set().Key(key).Value(token).Nx().PxMilliseconds(15000).Build()).Error()
			},
			del: func(ctx context.Context, key, token string) error {
				return script.Exec(ctx, c, []string{key}, []string{token}).Error()
			},
		}
	}},
}

func newClient(b *testing.B, d driver.Driver, trace *zamok.Trace) *zamok.Client {
	b.Helper()
	return newClientOf(b, d, zamok.Config{Trace: trace})
}

func newClientOf(b *testing.B, d driver.Driver, cfg zamok.Config) *zamok.Client {
	b.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := zamok.New(d, &cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// variant is one way to lock and unlock a name.
type variant struct {
	name  string
	cycle func(ctx context.Context, worker, n int) error
	took  []time.Duration // of a cycle, by block
}

const blockTime = 20 * time.Millisecond

func BenchmarkCycle(b *testing.B) {
	for _, lib := range libraries {
		for _, workers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", lib.name, workers), func(b *testing.B) {
				d, hand := lib.open(b, drivertest.StartServer(b).Addr())
				takeTurns(b, workers, []*variant{byHand(hand, workers), byScripts(b, d, workers), byZamok(newClient(b, d, nil), workers)})
			})
		}
	}
}

func byHand(r raw, workers int) *variant {
	names := make([]string, workers)
	for i := range names {
		names[i] = fmt.Sprint("raw:", i)
	}
	return &variant{name: "raw", cycle: func(ctx context.Context, w, n int) error {
		token := fmt.Sprint("token", w, "/", n)
		if err := r.set(ctx, names[w], token); err != nil {
			return err
		}
		return r.del(ctx, names[w], token)
	}}
}

func byScripts(b *testing.B, d driver.Driver, workers int) *variant {
	sets := make([]*keys.Set, workers)
	for i := range sets {
		set, err := keys.ForName("", fmt.Sprint("scripts", i))
		if err != nil {
			b.Fatal(err)
		}
		sets[i] = set
	}
	return &variant{name: "scripts", cycle: func(ctx context.Context, w, n int) error {
		token := fmt.Sprint("z1/host/1/abcdefghijklmnop/", w, "/", n)
		_, err := d.Eval(ctx, driver.Call{Script: lua.Acquire, Keys: sets[w].Main, Args: []string{token, "15000", "", "0", "w"}, Limit: time.Second})
		if err != nil {
			return err
		}
		_, err = d.Eval(ctx, driver.Call{Script: lua.Release, Keys: sets[w].Main, Args: []string{token, "", "0"}, Limit: time.Second})
		return err
	}}
}

func byZamok(c *zamok.Client, workers int) *variant {
	mutexes := make([]*zamok.Mutex, workers)
	for i := range mutexes {
		mutexes[i] = c.Mutex(fmt.Sprint("zamok", i), nil)
	}
	return &variant{name: "zamok", cycle: func(ctx context.Context, w, _ int) error {
		l, err := mutexes[w].Lock(ctx)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}}
}

// takeTurns lets each variant run for a block, again and again. One iteration
// is a turn of all.
func takeTurns(b *testing.B, workers int, variants []*variant) {
	ctx := context.Background()
	for _, v := range variants { // connections are made, scripts are loaded
		if _, err := v.block(ctx, workers); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for _, v := range variants {
			took, err := v.block(ctx, workers)
			if err != nil {
				b.Fatalf("%s: %v", v.name, err)
			}
			v.took = append(v.took, took)
		}
	}
	report(b, "cycle", variants)
}

// block runs cycles in all workers for a while and returns the time of one.
func (v *variant) block(ctx context.Context, workers int) (time.Duration, error) {
	var all sync.WaitGroup
	counts, errs := make([]int, workers), make([]error, workers)
	start := time.Now()
	for w := range workers {
		all.Go(func() {
			for time.Since(start) < blockTime && errs[w] == nil {
				errs[w] = v.cycle(ctx, w, counts[w])
				counts[w]++
			}
		})
	}
	all.Wait()
	took, cycles := time.Since(start), 0
	for w := range workers {
		cycles += counts[w]
		if errs[w] != nil {
			return 0, errs[w]
		}
	}
	return took / time.Duration(cycles), nil
}

// report prints the medians, and the last variant in units of the others.
func report(b *testing.B, what string, variants []*variant) {
	b.ReportMetric(0, "ns/op") // a turn means nothing
	last := median(variants[len(variants)-1].took)
	for _, v := range variants {
		m := median(v.took)
		b.ReportMetric(float64(m.Nanoseconds())/1000, v.name+"-µs/"+what)
		if m != last {
			b.ReportMetric(float64(last)/float64(m), "times-"+v.name)
		}
	}
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
