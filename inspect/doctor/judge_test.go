package doctor

import (
	"strings"
	"testing"
	"time"
)

// judged returns what the server's own words lead to, without asking more.
func judged(f facts) []Finding {
	var out []Finding
	for _, judge := range []func(facts) []Finding{
		blind, role, version, cluster, eviction, memory, persistence, quarantine, disk, replicas, pauses, buffers, connections,
	} {
		out = append(out, judge(f)...)
	}
	return out
}

func factsOf(f *fake) facts {
	return facts{info: f.info, settings: f.settings, conf: Config{TTL: 15 * time.Second}}
}

// A good server gives no reason to say anything, of whatever version it is.
func TestNothingToFind(t *testing.T) {
	for _, info := range []string{"", "redis_version:6.2.7", "redis_version:8.0.2", "redis_version:7.2.4\nvalkey_version:8.1.1\nredis_mode:\nserver_mode:standalone"} {
		f := good()
		parseInfo(f.info, info)
		found := judged(factsOf(f))
		complete(t, found)
		if Worst(found) != OK || len(found) < 9 {
			t.Errorf("with %q: %s", info, list(found))
		}
	}
}

// TestQuarantineIsTold, with what it makes of a lack of persistence.
func TestQuarantineIsTold(t *testing.T) {
	for says, c := range map[string]struct {
		node     string
		severity Severity
	}{
		"1m0s, after a restart":   {"a 7000 60000 -", OK},
		"for 5s more":             {"a 15000 60000 -", Warning},
		"from its next use on":    {"b 7000 60000 -", Warning},
		"for 1m0s more nobody is": {"a 99000 60000 -", Warning},
	} {
		f := good()
		parseInfo(f.info, "run_id:a\nserver_time_usec:10000000\naof_enabled:0")
		facts := factsOf(f)
		facts.node = strings.SplitN(c.node, " ", 4)
		found := judged(facts)
		complete(t, found)
		text := list(found)
		if !strings.Contains(text, string(c.severity)+" quarantine: ") || !strings.Contains(text, says) || !strings.Contains(text, "With the quarantine of 1m0s") || strings.Contains(text, "warning persistence") {
			t.Errorf("%s: %s", c.node, list(found))
		}
	}
}

// Each line changes a good server; "-" takes a setting away, as a server does that
// does not know it.
func TestJudges(t *testing.T) {
	for _, c := range []struct {
		info, settings string
		check          string
		severity       Severity
		says           string
	}{
		{"role:slave\nmaster_host:h\nmaster_port:1\nmaster_link_status:down", "", "role", Critical, "replica of h:1, and its link to it is down"},
		{"redis_mode:sentinel", "", "role", Critical, "Sentinel"},
		{"redis_version:6.0.16", "", "version", Critical, "Redis 6.0.16"},
		{"redis_version:7.2.4\nvalkey_version:8.1.1", "", "version", OK, "Valkey 8.1.1"},
		{"redis_version:\nvalkey_version:7.2.5", "", "version", OK, "Valkey 7.2.5"},
		{"redis_version:7.2.4\nvalkey_version:7.1.9", "", "version", Critical, "Valkey 7.1.9"},
		{"cluster_enabled:1", "", "cluster", Note, "holds for this node"},
		{"maxmemory_policy:allkeys-lru\nevicted_keys:12", "", "eviction", Critical, "allkeys-lru, maxmemory 95.4mb; 12 keys evicted"},
		{"maxmemory_policy:volatile-ttl", "", "eviction", Critical, "volatile-ttl"},
		{"maxmemory_policy:volatile-ttl\nmaxmemory:0", "", "eviction", Note, "no limit"},
		{"maxmemory_policy:", "", "eviction", Note, "does not tell"},
		{"maxmemory:0", "", "memory", Note, "no maxmemory"},
		{"maxmemory:0\nused_memory_rss:7900000000", "", "memory", Warning, "7.4gb of the machine's 7.5gb"},
		{"used_memory:95000000\nused_memory_rss:99000000", "", "memory", Warning, "90.6mb of maxmemory 95.4mb"},
		{"used_memory:95000000\nused_memory_rss:50000000", "", "memory", Warning, "swapped out"},
		{"used_memory:95000000\nmem_not_counted_for_evict:90000000", "", "memory", OK, "4.8mb of"},
		{"aof_enabled:0", "", "persistence", Warning, "last snapshot"},
		{"aof_enabled:0", "save=", "persistence", Warning, "no snapshots"},
		{"aof_enabled:0", "save=-", "persistence", Warning, "or are those of an old snapshot"},
		{"", "appendfsync=everysec", "persistence", Note, "the last second or two"},
		{"", "appendfsync=no", "persistence", Warning, "half a minute"},
		{"", "appendfsync=-", "persistence", Note, "cannot be seen"},
		{"", "no-appendfsync-on-rewrite=yes", "persistence", Warning, "While the file is rewritten"},
		{"aof_last_write_status:err", "", "disk", Critical, "append-only file failed"},
		{"rdb_last_bgsave_status:err", "", "disk", Critical, "last snapshot failed"},
		{"rdb_last_bgsave_status:err", "stop-writes-on-bgsave-error=no", "disk", Warning, "last snapshot failed"},
		{"rdb_last_bgsave_status:err", "save=", "disk", Warning, "last snapshot failed"},
		{"aof_last_bgrewrite_status:err", "", "disk", Warning, "rewrite"},
		{"aof_delayed_fsync:3", "", "disk", Note, "3 times"},
		{"loading:1", "", "disk", Critical, "loading"},
		{"", "min-replicas-to-write=0", "replicas", Warning, "1 connected; min-replicas-to-write 0"},
		{"", "min-replicas-max-lag=0", "replicas", Warning, "1 connected; min-replicas-to-write 0"},
		{"", "min-replicas-max-lag=60", "replicas", Warning, "for 60 s"},
		{"min_slaves_good_slaves:0", "", "replicas", Critical, "1 connected, 0 in time"},
		{"redis_version:6.2.6", "", "replicas", Warning, "before 6.2.7 let scripts write"},
		{"connected_slaves:0", "min-replicas-to-write=0", "replicas", Note, "none"},
		{"connected_slaves:0\nmin_slaves_good_slaves:0", "", "replicas", Critical, "refuses all writes"},
		{"", "min-replicas-to-write=-", "replicas", OK, "min-replicas-to-write is set"},
		{"", "replica-read-only=no", "replicas", Warning, "replica-read-only no"},
		{"slave0:ip=h,port=1,state=wait_bgsave,offset=0,lag=0", "", "replicas", Warning, "h:1 is not online (wait_bgsave)"},
		{"slave0:ip=h,port=1,state=online,offset=0,lag=40", "", "replicas", Warning, "h:1 was last heard 40 s ago"},
		{"latest_fork_usec:250000", "", "pauses", Note, "fork, for a snapshot or a rewrite, took 250ms"},
		{"latest_fork_usec:2500000", "", "pauses", Warning, "2.5s"},
		{"latency_percentiles_usec_keys:p50=4.0,p99=150000.1", "", "pauses", Note, "keys up to 150ms"},
		{"cmdstat_script|flush:calls=1,usec=1300000,usec_per_call=1300000.00", "", "pauses", Warning, "script flush up to 1.3s"},
		{"", "lua-time-limit=0", "pauses", Note, "SCRIPT KILL"},
		{"", "client-output-buffer-limit=normal 0 0 0 slave 0 0 0 pubsub 4096 0 0", "buffers", Warning, "pubsub 4096 0 0"},
		{"", "client-output-buffer-limit=normal 0 1024 5 slave 0 0 0 pubsub 33554432 8388608 60", "buffers", Warning, "normal 0 1024 5"},
		{"", "client-output-buffer-limit=normal 0 0 0 slave 0 0 0 pubsub 0 0 0", "buffers", Note, "no hard limit"},
		{"connected_clients:9500", "", "connections", Warning, "9500 of 10000"},
		{"rejected_connections:7", "", "connections", Note, "7 were refused"},
		{"evicted_clients:2", "", "connections", Warning, "2 were closed"},
		{"", "timeout=5", "connections", Note, "timeout 5"},
		{"", "timeout=10", "connections", OK, "3 of 10000"},
		{"", "tcp-keepalive=0", "connections", Note, "tcp-keepalive 0"},
		{"maxclients:0", "", "connections", OK, "3"},
	} {
		f := good()
		parseInfo(f.info, c.info)
		if name, value, ok := strings.Cut(c.settings, "="); ok {
			if f.settings[name] = value; value == "-" {
				delete(f.settings, name)
			}
		}
		found := judged(factsOf(f))
		complete(t, found)
		if len(find(found, c.check, c.severity, c.says)) != 1 {
			t.Errorf("%q, %q: want one finding %s of %s that says %q:%s", c.info, c.settings, c.severity, c.check, c.says, list(found))
		}
		if found := find(found, c.check, OK, ""); c.severity != OK && c.check != "replicas" && len(found) > 0 {
			t.Errorf("%q, %q: bad and in order at once: %s", c.info, c.settings, list(found))
		}
	}
}

// Where CONFIG may not be read, nothing is taken for bad that cannot be seen.
func TestWithoutConfig(t *testing.T) {
	f := good()
	found := judged(facts{info: f.info, noConfig: "ERR unknown command 'CONFIG'", conf: Config{TTL: time.Second}})
	complete(t, found)
	if Worst(found) != Note || len(find(found, "config", Note, "min-replicas-to-write")) != 1 {
		t.Error(list(found))
	}
	delete(f.info, "min_slaves_good_slaves") // INFO has it only when it is set
	if found := judged(facts{info: f.info}); len(find(found, "replicas", Warning, "min-replicas-to-write 0")) != 1 {
		t.Error(list(found))
	}
}

func TestReleases(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		before bool
	}{{"6.2.6", "6.2.7", true}, {"6.2.7", "6.2.7", false}, {"6.2.14", "6.2.7", false}, {"7.0", "6.2.7", false}, {"6.0.16-rc1", "6.2", true}, {"", "6.2", true}} {
		if got := parseRelease(c.a).before(parseRelease(c.b)); got != c.before {
			t.Errorf("%q before %q: %v", c.a, c.b, got)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 5: "5b", 1024: "1kb", 100 << 20: "100mb", 3 << 29: "1.5gb"} {
		if got := bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
