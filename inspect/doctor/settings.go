package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pauses: a server does one thing at a time, and all locks wait meanwhile. What
// it has counted since its start shows what happens when nobody looks. Commands
// that block (BLPOP) are counted without the time that they wait.
func pauses(f facts) []Finding {
	var out []Finding
	if fork := time.Duration(f.num("latest_fork_usec")) * time.Microsecond; fork >= pauseNote {
		out = append(out, paused(f, fork, fmt.Sprintf("its last fork, for a snapshot or a rewrite, took %v", short(fork)), "Less memory in one server, or a machine that forks faster; turn off transparent huge pages."))
	}
	if names, worst := slow(f.info); worst >= pauseNote {
		out = append(out, paused(f, worst, "slow commands: "+names, "Keep commands that walk over much (KEYS, SMEMBERS, long scripts) off this server: SLOWLOG GET has them. CONFIG RESETSTAT begins the count anew."))
	}
	if limit, known := f.setting("lua-time-limit"); known && limit == 0 {
		out = append(out, Finding{
			Check: "pauses", Severity: Note, Found: "lua-time-limit 0", Reason: "A script that hangs stops the server for ever: SCRIPT KILL is not taken.", Remedy: "Leave it at 5000.",
		})
	}
	if len(out) == 0 {
		out = []Finding{{Check: "pauses", Severity: OK, Found: "no slow command and no long fork since its start"}}
	}
	return out
}

// pauseNote is the pause that is worth a word.
const pauseNote = 100 * time.Millisecond

// paused judges one pause, by what latency judges a round trip by.
func paused(f facts, worst time.Duration, found, remedy string) Finding {
	out := Finding{Check: "pauses", Severity: Note, Found: found, Reason: "All locks wait meanwhile.", Remedy: remedy}
	if worst >= min(firstGrant/2, f.conf.TTL/5) {
		out.Severity = Warning
		out.Reason = "All locks wait meanwhile: hand-overs can come too late, and leases with a short TTL end."
	}
	return out
}

// slow names the three slowest kinds of commands. Since 7.0 the server tells what
// few of them take at most, before only what they take on average.
func slow(info map[string]string) (names string, worst time.Duration) {
	took := map[string]time.Duration{}
	for key, value := range info {
		name, ok := strings.CutPrefix(key, "latency_percentiles_usec_")
		if !ok {
			name, ok = strings.CutPrefix(key, "cmdstat_")
			value = "average=" + parts(value)["usec_per_call"]
		}
		for _, micros := range parts(value) {
			if us, err := strconv.ParseFloat(micros, 64); ok && err == nil {
				took[name] = max(took[name], time.Duration(us*1000))
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		return cmp.Or(cmp.Compare(took[b], took[a]), strings.Compare(a, b))
	})
	var words []string
	for _, name := range all[:min(3, len(all))] {
		if took[name] >= pauseNote {
			words = append(words, fmt.Sprintf("%s up to %v", strings.ReplaceAll(name, "|", " "), short(took[name])))
			worst = max(worst, took[name])
		}
	}
	return strings.Join(words, ", "), worst
}

// Limits of output buffers that pass. A message of zamok has some 200 bytes, and
// one client is sent one for each of its waiters; a reply has about as much, and a
// pipeline of renewals one for each lease. The defaults are far above.
const (
	leastHard = 1 << 20
	leastSoft = 256 << 10
)

// buffers: the server closes a connection whose output buffer is over its limit,
// and tells nobody.
func buffers(f facts) []Finding {
	words := strings.Fields(f.settings["client-output-buffer-limit"])
	if len(words) == 0 {
		return nil
	}
	var out []Finding
	for part := range slices.Chunk(words, 4) {
		if len(part) < 4 || part[0] != "pubsub" && part[0] != "normal" {
			continue
		}
		hard, _ := strconv.ParseInt(part[1], 10, 64)
		soft, _ := strconv.ParseInt(part[2], 10, 64)
		switch {
		case hard > 0 && hard < leastHard || soft > 0 && soft < leastSoft:
			out = append(out, Finding{
				Check: "buffers", Severity: Warning, Found: "client-output-buffer-limit " + strings.Join(part, " "),
				Reason: "A client that stands still for a moment is disconnected. What it was told is lost, and it comes too late for its turn.",
				Remedy: "client-output-buffer-limit " + map[string]string{"pubsub": "pubsub 32mb 8mb 60", "normal": "normal 0 0 0"}[part[0]] + ", the default.",
			})
		case part[0] == "pubsub" && hard == 0:
			out = append(out, Finding{
				Check: "buffers", Severity: Note, Found: "client-output-buffer-limit pubsub has no hard limit",
				Reason: "One subscriber that does not read can fill the server's memory.", Remedy: "client-output-buffer-limit pubsub 32mb 8mb 60, the default.",
			})
		}
	}
	if len(out) == 0 {
		out = []Finding{{Check: "buffers", Severity: OK, Found: "output buffers hold what locks need"}}
	}
	return out
}

// connections: those of locks stay open, and must be let in and kept. Closing idle
// ones (timeout) passes over those that are subscribed. A host that vanished counts
// as a listener until the kernel has missed it, after twice tcp-keepalive.
func connections(f facts) []Finding {
	var out []Finding
	bad := func(s Severity, found, reason, remedy string) {
		out = append(out, Finding{Check: "connections", Severity: s, Found: found, Reason: reason, Remedy: remedy})
	}
	open, most := f.num("connected_clients"), f.num("maxclients")
	if most > 0 && open*100 >= most*nearlyFull {
		bad(Warning, fmt.Sprintf("%d of %d", open, most), "When there are as many as may be, a client that connects again after a break is refused, and its leases end.", "Raise maxclients, or see who does not close his.")
	}
	if n := f.num("rejected_connections"); n > 0 {
		bad(Note, fmt.Sprintf("%d were refused since its start, since there were too many", n), "A client that connects again after a break is refused, and its leases end.", "Raise maxclients, or see who does not close his.")
	}
	if n := f.num("evicted_clients"); n > 0 {
		bad(Warning, fmt.Sprintf("%d were closed since its start, since all of them used too much memory", n), "It can hit that of a waiter, which then comes too late for its turn.", "Raise maxmemory-clients.")
	}
	if t, _ := f.setting("timeout"); t > 0 && time.Duration(t)*time.Second < f.conf.TTL/2 { // renewals come every third of a TTL
		bad(Note, fmt.Sprintf("timeout %d", t), "The server closes connections that are idle for so long, so that a renewal often has to connect first. Subscriptions are not closed.", "timeout 0, or more than a TTL.")
	}
	if t, known := f.setting("tcp-keepalive"); known && t == 0 {
		bad(Note, "tcp-keepalive 0", "A host that vanished while it waited is never missed. It is given the lock once, for 2 s in vain.", "tcp-keepalive 300, the default, or less.")
	}
	if len(out) == 0 {
		found := fmt.Sprintf("%d of %d that may be", open, most)
		if most == 0 { // not told before 6.2
			found = strconv.FormatInt(open, 10)
		}
		out = []Finding{{Check: "connections", Severity: OK, Found: found}}
	}
	return out
}
