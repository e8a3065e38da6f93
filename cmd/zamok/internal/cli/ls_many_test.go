package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
)

// With 20,000 locks held, ls has every one and check judges every one, and neither
// walks over the keys.
func TestManyLocks(t *testing.T) {
	const many = 20000
	server := drivertest.StartServer(t)
	for n := range 1000 { // keys of others, that nobody should look through
		server.MustDo("SET", fmt.Sprintf("other:%d", n), "x")
	}
	client := clientOf(t, server, &zamok.Config{Name: "many"})
	holdMany(t, client, many)
	until(t, "the process has named all", func() bool { return strings.HasPrefix(runOn(t, server, "check").out, "ZAMOK OK - 20000 locks held") })
	server.MustDo("CONFIG", "RESETSTAT")

	began := time.Now()
	r := runOn(t, server, "ls")
	t.Logf("ls of %d locks took %v", many, time.Since(began))
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != 0 || len(lines) != many+1 || r.stderr != "" {
		t.Fatalf("exit code %d, %d lines, and said: %s", r.code, len(lines), r.stderr)
	}
	for n, line := range lines[1:] {
		if !strings.HasPrefix(line, fmt.Sprintf("job-%05d  many on ", n)) {
			t.Fatalf("line %d is %q", n, line)
		}
	}
	var list []jsonLock
	if r := runOn(t, server, "ls", "--json", "--sort=age"); r.code != 0 || json.Unmarshal([]byte(r.out), &list) != nil || len(list) != many {
		t.Fatalf("--json: exit code %d, %d locks, and said: %s", r.code, len(list), r.stderr)
	}

	began = time.Now()
	if r := runOn(t, server, "check", "--held=1h"); r.code != 0 || !strings.HasPrefix(r.out, "ZAMOK OK - 20000 locks held, 0 waiting, 1 process |") {
		t.Errorf("check: exit code %d: %s %s", r.code, r.out, r.stderr)
	}
	t.Logf("check of %d locks took %v", many, time.Since(began))
	r = runOn(t, server, "check", "--held=1ms")
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 1 || len(lines) != mostLines+2 || lines[mostLines+1] != fmt.Sprintf("and %d more", many-mostLines) {
		t.Errorf("check --held: exit code %d, %d lines, the last %q", r.code, len(lines), lines[len(lines)-1])
	}

	stats := fmt.Sprint(server.MustDo("INFO", "commandstats"))
	for _, walk := range []string{"cmdstat_scan:", "cmdstat_keys:"} {
		if strings.Contains(stats, walk) {
			t.Errorf("%s was used:\n%s", walk, stats)
		}
	}
}

// holdMany takes job-00000 and so on.
func holdMany(t *testing.T, client *zamok.Client, many int) {
	t.Helper()
	next := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for n := range next {
				if _, err := client.Mutex(fmt.Sprintf("job-%05d", n), &zamok.MutexConfig{TTL: time.Hour}).Lock(context.Background()); err != nil {
					t.Errorf("lock %d: %v", n, err)
				}
			}
		})
	}
	for n := range many {
		next <- n
	}
	close(next)
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
