package scene

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
)

// usage is what a server did.
type usage struct {
	at     time.Time
	cpu    time.Duration
	counts drivertest.Counts
}

func usageOf(s *drivertest.Server) usage {
	return usage{at: time.Now(), cpu: serverCPU(s), counts: s.Commands()}
}

// since is what was done since an earlier look.
func (u usage) since(before usage) usage {
	return usage{cpu: u.cpu - before.cpu, counts: u.counts.Since(before.counts)}
}

// work is what locks cost of it, of clients that have subscribed already: without the looks of this program, what libraries send
// of their own accord, and what zamok's clients say of themselves, at most once a second
// each. The latter's script alone of those that run here calls ZREMRANGEBYSCORE, but for
// those of semaphores, of which no commands are reported.
func (u usage) work(k locker.Kind) (commands, requests, presence, pings float64) {
	counts := make(drivertest.Counts, len(u.counts))
	for name, n := range u.counts {
		switch {
		case name == "ping", name == "subscribe": // with rueidis our driver's PING is to subscribe again
			pings += float64(n)
		case name == "info", name == "hello", name == "script|load", name == "command", name == "zcard", strings.HasPrefix(name, "client"):
		default:
			counts[name] = n
		}
	}
	if said := counts["zremrangebyscore"]; said > 0 && k.Family == locker.Zamok {
		presence = float64(said)
		for _, name := range []string{"evalsha", "time", "zadd", "zremrangebyscore", "pttl", "pexpire", "set"} {
			counts[name] -= min(said, counts[name])
		}
	}
	for name, n := range counts {
		if slices.Contains(k.Sends, name) {
			requests += float64(n)
		}
	}
	return float64(counts.Total()), requests, presence, pings
}

// serverCPU is the time that the server has had of processors.
func serverCPU(s *drivertest.Server) time.Duration {
	text, _ := s.MustDo("INFO", "cpu").(string)
	return infoSeconds(text, "used_cpu_sys:") + infoSeconds(text, "used_cpu_user:")
}

func infoSeconds(text, field string) time.Duration {
	_, rest, _ := strings.Cut(text, "\n"+field)
	rest, _, _ = strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if err != nil {
		panic(fmt.Sprintf("INFO has no %s", field)) // no figure is better than a wrong one
	}
	return time.Duration(n * float64(time.Second))
}
