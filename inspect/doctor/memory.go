package doctor

import (
	"fmt"
	"strings"
)

// eviction: a server that may evict takes locks away. Locks have a TTL, so a
// policy volatile-* takes them first, and leaves the counters of fences, which
// have none; one of allkeys-* takes both. INFO has all of it, which hosted servers
// show while they refuse CONFIG.
func eviction(f facts) []Finding {
	out := Finding{Check: "eviction", Severity: OK, Found: "maxmemory-policy " + f.info["maxmemory_policy"]}
	most := f.num("maxmemory")
	switch f.info["maxmemory_policy"] {
	case "noeviction":
		return []Finding{out}
	case "":
		return []Finding{{
			Check: "eviction", Severity: Note, Found: "the server does not tell maxmemory_policy",
			Reason: "Whether it may evict locks is not known.", Remedy: "Look where the server's host shows its settings: it should be noeviction.",
		}}
	}
	out.Severity = Critical
	out.Found += ", maxmemory " + bytes(most)
	out.Reason = "Locks are keys with a TTL: when memory is short, the server deletes them, and others get them while their holders work."
	out.Remedy = "Set maxmemory-policy noeviction, or keep locks on a server of their own beside the cache."
	if n := f.num("evicted_keys"); n > 0 {
		out.Found += fmt.Sprintf("; %d keys evicted since its start", n)
	}
	if most == 0 {
		out.Severity = Note
		out.Reason = "Nothing is evicted while there is no limit. Once somebody sets one, locks are deleted when memory is short."
	}
	return []Finding{out}
}

// nearlyFull is the share, in percent, from which memory or connections are said
// to run short.
const nearlyFull = 90

// swappedFrom is the size from which less resident than used memory means that a
// part of it is swapped out, and not that the allocator counts otherwise.
const swappedFrom = 64 << 20

// memory: a full server refuses new locks, and one without a limit is killed by
// its system in the end. What counts against maxmemory leaves out the buffers of
// replicas and of the append-only file.
func memory(f facts) []Finding {
	most, machine := f.num("maxmemory"), f.num("total_system_memory")
	used := f.num("used_memory") - f.num("mem_not_counted_for_evict")
	resident := f.num("used_memory_rss")
	switch {
	case used >= swappedFrom && resident > 0 && resident*100 < used*nearlyFull:
		return []Finding{{
			Check: "memory", Severity: Warning, Found: fmt.Sprintf("%s in use, of which only %s are in memory: the rest is swapped out", bytes(used), bytes(resident)),
			Reason: "What is read back from the disk stops the server, and all locks wait meanwhile.",
			Remedy: "Give the machine more memory, or the server a lower maxmemory.",
		}}
	case most == 0 && machine > 0 && resident*100 >= machine*nearlyFull:
		return []Finding{{
			Check: "memory", Severity: Warning, Found: fmt.Sprintf("no maxmemory, and %s of the machine's %s are in use", bytes(resident), bytes(machine)),
			Reason: "The system kills the server when memory runs out, and locks are gone with it as far as they are not on disk.",
			Remedy: "Set maxmemory to what the machine can spare.",
		}}
	case most == 0:
		return []Finding{{
			Check: "memory", Severity: Note, Found: "no maxmemory; " + bytes(used) + " in use",
			Reason: "If the machine's memory runs out, the system kills the server instead of the server refusing what is new.",
			Remedy: "Set maxmemory to what the machine can spare.",
		}}
	case used*100 >= most*nearlyFull:
		return []Finding{{
			Check: "memory", Severity: Warning, Found: fmt.Sprintf("%s of maxmemory %s are in use", bytes(used), bytes(most)),
			Reason: "When it is full, no new lock can be taken, with noeviction; with any other policy locks are deleted.",
			Remedy: "Raise maxmemory, or remove keys.",
		}}
	}
	return []Finding{{Check: "memory", Severity: OK, Found: fmt.Sprintf("%s of maxmemory %s in use", bytes(used), bytes(most))}}
}

// bytes words a number of bytes as redis.conf does.
func bytes(n int64) string {
	if n == 0 {
		return "0"
	}
	for i, unit := range []string{"gb", "mb", "kb"} {
		if size := int64(1) << (30 - 10*i); n >= size {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(size)), ".0") + unit
		}
	}
	return fmt.Sprintf("%db", n)
}
