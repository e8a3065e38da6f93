package zamokgoredis

import (
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/driver/drivertest"
)

const benchScript = "return {1, ARGV[1]}"

// BenchmarkRaw is what the library itself costs, with the same bytes sent.
func BenchmarkRaw(b *testing.B) {
	c := newClient(b, drivertest.StartServer(b).URL())
	ctx := b.Context()
	sha, err := c.ScriptLoad(ctx, benchScript).Result()
	if err != nil {
		b.Fatal(err)
	}
	run := func() error { return c.EvalSha(ctx, sha, []string{"lock:bench"}, "token", "15000").Err() }
	bench(b, run)
}

// BenchmarkEval is the same through the driver.
func BenchmarkEval(b *testing.B) {
	d := New(newClient(b, drivertest.StartServer(b).URL()))
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
