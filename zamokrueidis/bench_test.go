package zamokrueidis

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

const benchScript = "return {1, ARGV[1]}"

func benchClient(b *testing.B) rueidis.Client {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{drivertest.StartServer(b).Addr()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// BenchmarkRaw is what the library itself costs, with the same bytes sent.
func BenchmarkRaw(b *testing.B) {
	c := benchClient(b)
	ctx := b.Context()
	sha, err := c.Do(ctx, c.B().ScriptLoad().Script(benchScript).Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	bench(b, func() error {
		return c.Do(ctx, c.B().Evalsha().Sha1(sha).Numkeys(1).Key("lock:bench").Arg("token", "15000").Build()).Error()
	})
}

// BenchmarkEval is the same through the driver.
func BenchmarkEval(b *testing.B) {
	d := New(benchClient(b))
	call := driver.Call{
		Script: driver.NewScript("bench", benchScript),
		Keys:   []string{"lock:bench"}, Args: []string{"token", "15000"}, Limit: 10 * time.Second,
	}
	ctx := b.Context()
	bench(b, func() error { _, err := d.Eval(ctx, call); return err })
}

func bench(b *testing.B, run func() error) {
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := run(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
