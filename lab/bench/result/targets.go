package result

import (
	"strings"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// Target is what a figure of zamok must be. It is held to both drivers.
type Target struct {
	Row     string // what is measured
	Short   string // the same for a reader in a hurry; empty: it is not for him
	Figure  string // what is judged
	Bound   float64
	AtLeast bool

	// Columns are what the row shows of everybody: the figure itself, in a unit that can
	// be compared.
	Scenario, Metric string
	X                int
	Digits           int

	of func(d *Data, on string) map[int]float64
}

// Of returns what is judged, of the driver for that client library.
func (t Target) Of(d *Data, on string) Spread { return SpreadOf(list(t.of(d, on))) }

// Verdict is the worse one of both drivers.
func (t Target) Verdict(d *Data) Verdict {
	return Worst(t.Of(d, "goredis").Judge(t.Bound, t.AtLeast), t.Of(d, "rueidis").Judge(t.Bound, t.AtLeast))
}

// Targets returns the table of targets. A bound stands here and nowhere else; what a figure
// is in units of is part of it, since a time alone means nothing on another machine.
func Targets() []Target {
	plain := func(scenario, metric string, x int) func(*Data, string) map[int]float64 {
		return func(d *Data, on string) map[int]float64 {
			return d.Values(scenario, locker.Zamok+"/"+on, metric, x)
		}
	}
	floor := func(scenario, metric string) func(*Data, string) map[int]float64 {
		return func(d *Data, on string) map[int]float64 {
			return Ratio(d.Values(scenario, locker.Zamok+"/"+on, metric, 0), d.Values(scenario, locker.Scripts+"/"+on, metric, 0))
		}
	}
	targets := []Target{
		{Row: "Uncontended cycle, 1 goroutine: µs", Figure: "server's processor, × bare scripts", Bound: 1.1, Scenario: scene.Cycle, Metric: "server µs", Digits: 1, of: floor(scene.Cycle, "server µs")},
		{Row: "…", Short: "lock and release, 1 goroutine, µs", Figure: "wall time, × bare scripts, less their own spread", Bound: 1, Scenario: scene.Cycle, Metric: "µs", Digits: 0, of: beyondNoise},
		{Row: "… commands on the server", Short: "… commands on the server", Figure: "commands", Bound: 9, Scenario: scene.Cycle, Metric: "commands", Digits: 1, of: plain(scene.Cycle, "commands", 0)},
		{Row: "… allocations in the process", Figure: "allocations, on a driver that replies from memory", Bound: 8, Scenario: scene.Cycle, Metric: "allocations", Digits: 0, of: plain(scene.Cycle, "allocations of ours", 0)},
		{Row: "Uncontended, 64 goroutines, own names: cycles/s", Short: "64 goroutines, own names, cycles/s", Figure: "× bare scripts", Bound: 0.9, AtLeast: true, Scenario: scene.Busy, Metric: "cycles/s", of: floor(scene.Busy, "cycles/s")},
		{Row: "…", Figure: "× the best peer", Bound: 1.1, AtLeast: true, Scenario: scene.Busy, Metric: "cycles/s", of: bestPeer},
		{Row: "16 clients, one lock, held 5 ms: release → another holds, p50 µs", Short: "16 clients, one lock: release → another holds, p50 µs", Figure: "× bare hand-over", Bound: 1.25, Scenario: scene.HandOver, Metric: "p50 µs", of: floor(scene.HandOver, "p50 µs")},
		{Row: "… p99 µs", Short: "… p99 µs", Figure: "× bare hand-over", Bound: 1.5, Scenario: scene.HandOver, Metric: "p99 µs", of: floor(scene.HandOver, "p99 µs")},
		{Row: "… longest wait, s", Short: "… longest wait, s", Figure: "× 16 turns", Bound: 1.3, Scenario: scene.HandOver, Metric: "longest wait s", Digits: 2, of: plain(scene.HandOver, "longest/turns", 0)},
		{Row: "… fewest / most acquisitions of a client", Short: "… fewest / most acquisitions of a client", Figure: "ratio", Bound: 0.9, AtLeast: true, Scenario: scene.HandOver, Metric: "fewest/most", Digits: 2, of: plain(scene.HandOver, "fewest/most", 0)},
		{Row: "… Jain's index", Figure: "index", Bound: 0.99, AtLeast: true, Scenario: scene.HandOver, Metric: "jain", Digits: 3, of: plain(scene.HandOver, "jain", 0)},
		{Row: "64 clients, held 1 ms: commands an acquisition", Short: "64 clients, held 1 ms: commands an acquisition", Figure: "commands", Bound: 20, Scenario: scene.Crowd, Metric: "commands", Digits: 1, of: plain(scene.Crowd, "commands", 0)},
		{Row: "… requests an acquisition", Figure: "requests", Bound: 3, Scenario: scene.Crowd, Metric: "requests", Digits: 1, of: plain(scene.Crowd, "requests", 0)},
		{Row: "10,000 waiters: commands an acquisition", Figure: "those at 10,000 less those at 10", Bound: 1, Scenario: scene.Growth, Metric: "commands", X: 10000, Digits: 1, of: grown},
		{Row: "64 goroutines of one process, one lock: acquisitions/s", Short: "64 goroutines of a process, one lock, acquisitions/s", Figure: "acquisitions/s, fences growing", Bound: 500_000, AtLeast: true, Scenario: scene.Line, Metric: "acquisitions/s", of: plain(scene.Line, "acquisitions/s", 0)},
		{Row: "100 waiting processes, nobody releases: requests/s", Short: "100 waiting processes, requests/s", Figure: "requests/s", Bound: 3, Scenario: scene.Idle, Metric: "idle requests/s", X: 100, Digits: 1, of: plain(scene.Idle, "idle requests/s", 100)},
		{Row: "8,000 held, renewed locks: goroutines a lock", Figure: "goroutines", Bound: 0.01, Scenario: scene.Held, Metric: "goroutines", Digits: 2, of: plain(scene.Held, "goroutines", 0)},
		{Row: "… bytes a lock, heap and stacks", Short: "8,000 held locks, bytes each", Figure: "bytes", Bound: 1024, Scenario: scene.Held, Metric: "bytes", of: plain(scene.Held, "bytes", 0)},
		{Row: "100,000 held: lost", Figure: "locks", Bound: 0, Scenario: scene.HeldMany, Metric: "lost", of: plain(scene.HeldMany, "lost", 0)},
		{Row: "Holder cut off, TTL 5 s: two believe that they hold, ms", Short: "holder cut off: two believe that they hold, ms", Figure: "ms", Bound: 0, Scenario: scene.CutOff, Metric: "overlap ms", of: plain(scene.CutOff, "overlap ms", 0)},
		{Row: "One hung node of three: slowest lock, ms", Short: "one hung node of three: slowest lock, ms", Figure: "ms", Bound: 100, Scenario: scene.Hung, Metric: "slowest lock ms", Digits: 1, of: plain(scene.Hung, "slowest lock ms", 0)},
		{Row: "… slowest release, ms", Figure: "ms", Bound: 100, Scenario: scene.Hung, Metric: "slowest release ms", Digits: 1, of: plain(scene.Hung, "slowest release ms", 0)},
	}
	return targets
}

// grown is how much more commands an acquisition takes with ten thousand waiters.
func grown(d *Data, on string) map[int]float64 {
	few := d.Values(scene.Growth, locker.Zamok+"/"+on, "commands", 10)
	by := make(map[int]float64)
	for rep, v := range d.Values(scene.Growth, locker.Zamok+"/"+on, "commands", 10000) {
		if w, ok := few[rep]; ok {
			by[rep] = v - w
		}
	}
	return by
}

// beyondNoise is the time of a cycle in units of the most that the bare scripts took in
// a usual repetition, their upper quartile: what is not more cannot be told from noise.
func beyondNoise(d *Data, on string) map[int]float64 {
	noise := d.Spread(scene.Cycle, locker.Scripts+"/"+on, "µs", 0)
	if noise.N == 0 {
		return nil
	}
	ratio := Ratio(d.Values(scene.Cycle, locker.Zamok+"/"+on, "µs", 0), d.Values(scene.Cycle, locker.Scripts+"/"+on, "µs", 0))
	for rep := range ratio {
		ratio[rep] /= noise.High / noise.Median
	}
	return ratio
}

// bestPeer is zamok's rate in units of the best peer's of the same repetition, whatever
// that one's client library.
func bestPeer(d *Data, on string) map[int]float64 {
	best := make(map[int]float64)
	for _, k := range locker.All() {
		if !k.Peer {
			continue
		}
		for rep, v := range d.Values(scene.Busy, k.Name, "cycles/s", 0) {
			best[rep] = max(best[rep], v)
		}
	}
	return Ratio(d.Values(scene.Busy, locker.Zamok+"/"+on, "cycles/s", 0), best)
}

// Library is the name of a locker as a table has it.
func Library(name string) string {
	family, on, _ := strings.Cut(name, "/")
	switch family {
	case locker.Zamok, locker.Scripts, locker.Raw:
		on = map[string]string{"goredis": "go-redis", "rueidis": "rueidis"}[on]
		if family == locker.Scripts {
			family = "bare scripts"
		}
		return family + ", " + on
	}
	return family
}
