package parts

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// crowded is a semaphore with 10,000 permits, all but ten of which are held.
var crowded = kind{"permit-of-10000", func(c *zamok.Client, name string) take { return c.Semaphore(name, 10_000, nil).Acquire }}

// BenchmarkServerCPU is what an uncontended cycle of each kind takes of the server:
// the time in its scripts, which the server counts itself in µs, and that of its
// process, which has also the network. One iteration is a round of all kinds; the
// medians of the rounds are reported, and each kind in units of the mutex.
func BenchmarkServerCPU(b *testing.B) {
	const cycles = 400
	kinds := []kind{mutex, writer, reader, permit, crowded}
	server := drivertest.StartServer(b)
	d, _ := libraries[0].open(b, server.Addr())
	c := newClient(b, d, nil)
	for from := 0; from < 9_990; from += 1_000 {
		args := []string{"ZADD", "semaphore:" + crowded.name}
		for i := from; i < min(from+1_000, 9_990); i++ {
			args = append(args, "9000000000000", fmt.Sprint("z1/host/1/abcdefghijklmnop/", i))
		}
		server.MustDo(args...)
	}
	server.MustDo("PEXPIREAT", "semaphore:"+crowded.name, "9000000000000")
	type costs struct{ scripts, process []time.Duration }
	of := make([]costs, len(kinds))
	cycle := func(lock take) {
		l, err := lock(context.Background())
		if err == nil {
			err = l.Release(context.Background())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	round := func() {
		for i, k := range kinds {
			lock := k.of(c, k.name)
			scripts, process := scriptTime(b, server), serverCPU(b, server)
			for range cycles {
				cycle(lock)
			}
			of[i].scripts = append(of[i].scripts, (scriptTime(b, server)-scripts)/cycles)
			of[i].process = append(of[i].process, (serverCPU(b, server)-process)/cycles)
		}
	}
	for _, k := range kinds {
		cycle(k.of(c, k.name)) // connections are made, scripts are loaded
	}
	for b.Loop() {
		round()
	}
	b.ReportMetric(0, "ns/op")
	for i, k := range kinds {
		scripts, process := median(of[i].scripts), median(of[i].process)
		b.ReportMetric(float64(scripts.Nanoseconds())/1000, k.name+"-script-µs")
		b.ReportMetric(float64(process.Nanoseconds())/1000, k.name+"-process-µs")
		if i > 0 {
			b.ReportMetric(float64(scripts)/float64(median(of[0].scripts)), k.name+"-script-ratio")
			b.ReportMetric(float64(process)/float64(median(of[0].process)), k.name+"-process-ratio")
		}
	}
}

// scriptTime is the time that the server has spent in calls of scripts.
func scriptTime(b *testing.B, s *drivertest.Server) time.Duration {
	b.Helper()
	text, _ := s.MustDo("INFO", "commandstats").(string)
	return infoField(b, text, "cmdstat_evalsha:", "usec=", time.Microsecond)
}
