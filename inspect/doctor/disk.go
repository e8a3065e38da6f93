package doctor

import (
	"fmt"
	"strings"
)

// persistence: what is left of the locks after a restart. A lock that was granted
// and is not on disk is free after it, while its holder works until its next
// renewal. Fences grow all the same, by the clock.
//
// What each way loses is that of the documentation of the server: nothing at a
// crash of the process, since the system has what was written; at a power loss
// what was not forced to the disk.
func persistence(f facts) []Finding { return withQuarantine(f, kept(f)) }

func kept(f facts) []Finding {
	const again = "A lock that is lost so goes to another while its holder works, until that renews it. Fences still grow."
	if f.num("aof_enabled") == 0 {
		return []Finding{snapshots(f, again)}
	}
	out := Finding{Check: "persistence", Severity: OK, Found: "appendonly yes, appendfsync " + f.settings["appendfsync"]}
	suspended := f.settings["no-appendfsync-on-rewrite"] == "yes"
	if suspended {
		out.Found += ", no-appendfsync-on-rewrite yes"
	}
	switch fsync := f.settings["appendfsync"]; {
	case fsync == "":
		out.Severity, out.Found = Note, "appendonly yes; appendfsync cannot be seen"
		out.Reason = "What a crash of the process or a power loss takes depends on appendfsync."
		out.Remedy = "Where no lock may be lost: appendfsync always."
	case fsync == "no":
		out.Severity = Warning
		out.Reason = "A power loss takes what the system had not yet written, often half a minute. " + again
		out.Remedy = "appendfsync everysec, or always where no lock may be lost."
	case fsync == "everysec":
		out.Severity = Note
		out.Reason = "A power loss takes the last second or two, and so does a crash of the process while the disk is busy. " + again
		out.Remedy = "appendfsync always, where even that is too much; it costs a disk's wait for each lock."
	case suspended:
		out.Severity = Warning
		out.Reason = "While the file is rewritten nothing is forced to the disk; a power loss then takes up to half a minute. " + again
		out.Remedy = "no-appendfsync-on-rewrite no."
	}
	return []Finding{out}
}

// snapshots: without an append-only file. An orderly shutdown writes one where they
// are configured, so only what is not orderly loses locks then. Where CONFIG may
// not be read, INFO does not tell whether they are.
func snapshots(f facts, again string) Finding {
	out := Finding{
		Check: "persistence", Severity: Warning, Found: "appendonly no",
		Remedy: "appendonly yes, with appendfsync always where no lock may be lost; or zamok.Config.Quarantine (--quarantine), or a fence at the resource: see docs/fencing.md.",
	}
	save, known := f.settings["save"]
	switch {
	case !known:
		out.Reason = "After a crash or a power loss all locks are gone, or are those of an old snapshot. " + again
	case save == "":
		out.Found += ", no snapshots"
		out.Reason = "After any restart all locks are gone. " + again
	default:
		out.Found += ", snapshots (save " + save + ")"
		out.Reason = "After a crash or a power loss locks are what they were at the last snapshot. " + again
	}
	return out
}

// disk: whether the server writes what it should. Some failures make it refuse
// every write (MISCONF), which tryScripts sees as well; here is why. A failed
// snapshot does so only where snapshots are configured.
func disk(f facts) []Finding {
	var out []Finding
	bad := func(s Severity, found, reason string) {
		out = append(out, Finding{Check: "disk", Severity: s, Found: found, Reason: reason, Remedy: "See the server's log; mostly the disk is full, slow, or may not be written."})
	}
	if s := f.info["aof_last_write_status"]; s != "" && s != "ok" {
		bad(Critical, "the last write of the append-only file failed", "The server refuses all writes: no lock can be taken, renewed or released.")
	}
	if s := f.info["rdb_last_bgsave_status"]; s != "" && s != "ok" {
		stops := f.settings["stop-writes-on-bgsave-error"] != "no" && f.settings["save"] != ""
		switch {
		case stops:
			bad(Critical, "the last snapshot failed", "With stop-writes-on-bgsave-error yes the server refuses all writes: no lock can be taken, renewed or released.")
		default:
			bad(Warning, "the last snapshot failed", "After a restart the server has older data, or a new replica gets none.")
		}
	}
	if s := f.info["aof_last_bgrewrite_status"]; s != "" && s != "ok" {
		bad(Warning, "the last rewrite of the append-only file failed", "The file grows until the disk is full; then the server refuses all writes.")
	}
	if n := f.num("aof_delayed_fsync"); n > 0 {
		bad(Note, fmt.Sprintf("%d times since its start the disk was too slow for appendfsync", n), "Each time all locks waited for it.")
	}
	if f.num("loading") != 0 {
		out = append(out, Finding{
			Check: "disk", Severity: Critical, Found: "the server is loading its data", Reason: "No lock can be taken until it is done.", Remedy: "Wait; see loading_eta_seconds of INFO.",
		})
	}
	if len(out) == 0 && strings.Contains(f.info["rdb_last_bgsave_status"]+f.info["aof_last_write_status"], "ok") {
		return []Finding{{Check: "disk", Severity: OK, Found: "no write to it has failed"}}
	}
	return out
}
