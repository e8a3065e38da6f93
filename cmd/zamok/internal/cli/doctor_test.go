package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/inspect/doctor"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// examined is what the doctor finds on a real server as this user.
func examined(t *testing.T, s *drivertest.Server, user string, c doctor.Config) []doctor.Finding {
	t.Helper()
	o := &redis.Options{Addr: s.Addr(), DisableIdentity: true}
	if user != "" {
		o.Username, o.Password = user, "not-a-secret"
	}
	client := redis.NewClient(o)
	defer client.Close()
	c.Measure = 50 * time.Millisecond
	found, err := doctor.Examine(t.Context(), zamokgoredis.New(client), &c)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// addUser makes one that examined can be.
func addUser(s *drivertest.Server, name string, rights ...[]string) {
	s.MustDo(append([]string{"ACL", "SETUSER", name, "on", ">not-a-secret"}, slices.Concat(rights...)...)...)
}

// findingLike looks for a finding of that severity, of any when it is empty.
func findingLike(found []doctor.Finding, check string, s doctor.Severity, says string) bool {
	return slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Check == check && (s == "" || f.Severity == s) && strings.Contains(f.Found+"\n"+f.Reason, says)
	})
}

// awaitServer polls what nothing announces.
func awaitServer(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

func infoLine(s *drivertest.Server, section, line string) bool {
	text, _ := s.Do("INFO", section)
	info, _ := text.(string)
	return strings.Contains(info, line)
}

// documentedSettings are the arguments of a server that is set up as the table of
// docs/guarantees.md says.
func documentedSettings(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Settings of the server\n")
	var args []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `([a-z0-9]+)`").FindAllStringSubmatch(table, -1) {
		args = append(args, "--"+m[1], m[2])
	}
	if len(args) < 16 {
		t.Fatalf("docs/guarantees.md has no table of settings that can be read: %q", args)
	}
	return args
}

// On a server that is set up as docs/guarantees.md says, for a user that has the
// rights of docs/guarantees.md, there is nothing to find.
func TestDoctorDocumentedServer(t *testing.T) {
	t.Parallel()
	args := documentedSettings(t)
	s := drivertest.StartServer(t, args...)
	host, port, _ := net.SplitHostPort(s.Addr())
	drivertest.StartServer(t, append(args, "--replicaof", host, port)...)
	awaitServer(t, "the replica", func() bool { return infoLine(s, "replication", "min_slaves_good_slaves:1") })
	addUser(s, "app", doctor.Rights(""))
	addUser(s, "ops", doctor.Rights(""), doctor.RightsToLook())
	found := examined(t, s, "ops", doctor.Config{})
	for _, f := range found {
		if ofMachine := f.Check == "latency" || f.Check == "pauses" || f.Check == "clock"; f.Severity != doctor.OK && !ofMachine {
			t.Errorf("found on a good server: %+v", f)
		}
	}
	for _, check := range []string{"role", "version", "eviction", "memory", "persistence", "disk", "replicas", "buffers", "connections", "scripts", "pubsub", "keys"} {
		if !findingLike(found, check, doctor.OK, "") {
			t.Errorf("%s was not looked at", check)
		}
	}
	found = examined(t, s, "app", doctor.Config{}) // it may do all that locks need, and see little
	for _, f := range found {
		if f.Severity == doctor.Critical || f.Severity == doctor.Warning && f.Check != "info" {
			t.Errorf("found with the rights of locks alone: %+v", f)
		}
	}
	if !findingLike(found, "info", doctor.Warning, "INFO is refused: NOPERM") || !findingLike(found, "config", doctor.Note, "NOPERM") || !findingLike(found, "keys", doctor.Note, "SCAN is refused") {
		t.Errorf("what could not be seen: %+v", found)
	}
}

// slowScript stops the server for some tenths of a second: it counts, because TIME
// stands still in a script of newer servers.
const slowScript = `for i = 1, 3e7 do end`

// Servers that are set up badly, each in one way.
func TestDoctorBadServers(t *testing.T) {
	for _, c := range []struct {
		check    string
		severity doctor.Severity
		says     string
		args     []string
		do       []string // then this is done on it
	}{
		{"eviction", doctor.Critical, "allkeys-lru, maxmemory 100mb", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, nil},
		{"eviction", doctor.Critical, "volatile-ttl", []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}, nil},
		{"eviction", doctor.Note, "no limit", []string{"--maxmemory-policy", "volatile-lru"}, nil},
		{"memory", doctor.Note, "no maxmemory", nil, nil},
		{"memory", doctor.Warning, "of maxmemory 1b are in use", []string{"--maxmemory", "1"}, nil},
		{"writes", doctor.Critical, "OOM", []string{"--maxmemory", "1"}, nil},
		{"persistence", doctor.Warning, "no snapshots", nil, nil},
		{"persistence", doctor.Warning, "snapshots (save 3600 1)", []string{"--save", "3600 1"}, nil},
		{"persistence", doctor.Note, "the last second or two", []string{"--appendonly", "yes"}, nil},
		{"persistence", doctor.Warning, "half a minute", []string{"--appendonly", "yes", "--appendfsync", "no"}, nil},
		{"persistence", doctor.Warning, "While the file is rewritten", []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes"}, nil},
		{"replicas", doctor.Note, "none", nil, nil},
		{"replicas", doctor.Critical, "0 connected, 0 in time", []string{"--min-replicas-to-write", "1"}, nil},
		{"writes", doctor.Critical, "NOREPLICAS", []string{"--min-replicas-to-write", "1"}, nil},
		{"role", doctor.Critical, "replica of 127.0.0.1:1, and its link to it is down", []string{"--replicaof", "127.0.0.1", "1"}, nil},
		{"writes", doctor.Critical, "READONLY", []string{"--replicaof", "127.0.0.1", "1"}, nil},
		{"pauses", "", "eval up to", nil, []string{"EVAL", slowScript, "0"}},
		{"pauses", doctor.Note, "lua-time-limit 0", []string{"--lua-time-limit", "0"}, nil},
		{"buffers", doctor.Warning, "pubsub 4096 0 0", []string{"--client-output-buffer-limit", "pubsub", "4096", "0", "0"}, nil},
		{"buffers", doctor.Note, "no hard limit", []string{"--client-output-buffer-limit", "pubsub", "0", "0", "0"}, nil},
		{"connections", doctor.Note, "timeout 5", []string{"--timeout", "5"}, nil},
		{"connections", doctor.Note, "tcp-keepalive 0", []string{"--tcp-keepalive", "0"}, nil},
		{"scripts", doctor.Critical, "does not know GETEX", []string{"--rename-command", "GETEX", ""}, nil},
		{"config", doctor.Note, "unknown command", []string{"--rename-command", "CONFIG", ""}, nil},
		{"cluster", doctor.Note, "a node of a cluster", []string{"--cluster-enabled", "yes"}, nil},
		{"scripts", doctor.Critical, "CLUSTERDOWN", []string{"--cluster-enabled", "yes"}, nil},
		{"user", doctor.Note, `"default" may run FLUSHALL`, nil, nil},
		{"keys", doctor.Warning, `locks without a TTL: "forgotten"`, nil, []string{"SET", "lock:forgotten", "x"}},
		{"keys", doctor.Note, `without a TTL: "zamok:queue:{lock:a}"`, nil, []string{"ZADD", "zamok:queue:{lock:a}", "1", "m"}},
		{"clock", doctor.Warning, "ahead of what the server's clock shows", nil, []string{"SET", "zamok:fence:{000001}", "9000000000000000"}},
	} {
		t.Run(c.check+" "+c.says, func(t *testing.T) {
			t.Parallel()
			s := drivertest.StartServer(t, c.args...)
			if c.do != nil {
				s.MustDo(c.do...)
			}
			if found := examined(t, s, "", doctor.Config{}); !findingLike(found, c.check, c.severity, c.says) {
				t.Errorf("want a %s of %s that says %q, found %+v", c.severity, c.check, c.says, found)
			}
		})
	}
}

// With replicas, and without their being asked for.
func TestDoctorReplicas(t *testing.T) {
	t.Parallel()
	s := drivertest.StartServer(t, "--replica-read-only", "no")
	host, port, _ := net.SplitHostPort(s.Addr())
	drivertest.StartServer(t, "--replicaof", host, port)
	awaitServer(t, "the replica", func() bool { return infoLine(s, "replication", "state=online") })
	found := examined(t, s, "", doctor.Config{})
	if !findingLike(found, "replicas", doctor.Warning, "1 connected; min-replicas-to-write 0") || !findingLike(found, "replicas", doctor.Warning, "replica-read-only no") {
		t.Errorf("found %+v", found)
	}
	s.MustDo("CONFIG", "SET", "min-replicas-to-write", "1")
	s.MustDo("CONFIG", "SET", "min-replicas-max-lag", "60")
	if found := examined(t, s, "", doctor.Config{}); !findingLike(found, "replicas", doctor.Warning, "for 60 s") {
		t.Errorf("found %+v", found)
	}
}

// A snapshot that cannot be written stops all writes.
func TestDoctorDisk(t *testing.T) {
	t.Parallel()
	s := drivertest.StartServer(t, "--save", "3600 1000000")
	dir := s.MustDo("CONFIG", "GET", "dir").([]any)[1].(string)
	if err := os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.MustDo("SET", "k", "v")
	s.MustDo("BGSAVE")
	awaitServer(t, "its failure", func() bool { return infoLine(s, "persistence", "rdb_last_bgsave_status:err") })
	found := examined(t, s, "", doctor.Config{})
	if !findingLike(found, "disk", doctor.Critical, "the last snapshot failed") || !findingLike(found, "writes", doctor.Critical, "MISCONF") {
		t.Errorf("found %+v", found)
	}
}

func TestDoctorConnections(t *testing.T) {
	t.Parallel()
	s := drivertest.StartServer(t, "--maxclients", "20")
	for range 17 {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	awaitServer(t, "the connections", func() bool { return infoLine(s, "clients", "connected_clients:18") })
	if found := examined(t, s, "", doctor.Config{}); !findingLike(found, "connections", doctor.Warning, "of 20") {
		t.Errorf("found %+v", found)
	}
}

// The doctor leaves the server as it was, also where it is full of keys that look
// like its own.
func TestDoctorChangesNothing(t *testing.T) {
	t.Parallel()
	s := drivertest.StartServer(t)
	s.MustDo("SET", "lock:a", "x")
	s.MustDo("ZADD", "zamok:queue:{lock:a}", "1", "m")
	before := s.MustDo("INFO", "persistence").(string)
	changes := regexp.MustCompile(`rdb_changes_since_last_save:\d+`)
	for _, prefix := range []string{"", "app:", "a*[b]? {c}"} {
		if found := examined(t, s, "", doctor.Config{Prefix: prefix, Keys: -1}); !findingLike(found, "scripts", doctor.OK, "all rights") {
			t.Errorf("prefix %q: %+v", prefix, found)
		}
	}
	if was, is := changes.FindString(before), changes.FindString(s.MustDo("INFO", "persistence").(string)); was == "" || was != is {
		t.Errorf("writes: %s, then %s", was, is)
	}
	if n := s.MustDo("DBSIZE"); n != int64(2) {
		t.Errorf("%v keys, want 2", n)
	}
	if left := s.MustDo("PUBSUB", "CHANNELS").([]any); len(left) > 0 {
		t.Errorf("still subscribed: %v", left)
	}
}

// doctorSaid runs the program and returns its exit code and what it wrote.
func doctorSaid(t *testing.T, args ...string) (code int, stdout string) {
	t.Helper()
	var files []*os.File
	for range 2 {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	code = Run(t.Context(), args, os.Stdin, files[0], files[1])
	text, err := os.ReadFile(files[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}

// What --acl prints is taken by a server as it is. It makes no user that could log
// in; with a password the user has all that locks need, whatever the prefix is.
func TestDoctorACL(t *testing.T) {
	t.Parallel()
	s := drivertest.StartServer(t)
	for _, prefix := range []string{"", "app:", "a*[b]? {c}\t\"'é\x01:"} {
		s.MustDo("ACL", "SETUSER", "app", "reset")
		code, line := doctorSaid(t, "doctor", "--acl", "app", "--operator", "--prefix", prefix)
		if words := strings.Fields(line); code != 0 || strings.Count(line, "\n") != 1 || len(words) < 4 {
			t.Fatalf("prefix %q: exit code %d, %q", prefix, code, line)
		} else if got := s.MustDo(words...); got != "OK" {
			t.Errorf("prefix %q: %v", prefix, got)
		}
		for _, password := range []string{"", "PASSWORD", "not-a-secret"} {
			if _, err := s.Do("AUTH", "app", password); err == nil {
				t.Fatalf("prefix %q: one can log in with %q", prefix, password)
			}
		}
		s.MustDo("ACL", "SETUSER", "app", ">not-a-secret")
		found := examined(t, s, "app", doctor.Config{Prefix: prefix})
		if !findingLike(found, "scripts", doctor.OK, "all rights") || findingLike(found, "info", "", "") || findingLike(found, "config", "", "") || !findingLike(found, "keys", doctor.OK, "") || !findingLike(found, "pubsub", doctor.OK, "") {
			t.Errorf("prefix %q: %+v", prefix, found)
		}
	}
}

// The page stays a page, whatever the server's words are, and none of them steers
// the terminal.
func TestPrintFindings(t *testing.T) {
	var b bytes.Buffer
	printFindings(&b, []doctor.Finding{
		{Check: "a", Severity: doctor.Critical, Found: strings.Repeat("ж", 200), Reason: strings.Repeat("word ", 50), Remedy: "do \x1b[31m it"},
		{Check: "connections", Severity: doctor.Warning, Found: "short"},
		{Check: "b", Severity: doctor.Warning, Found: "short"},
		{Check: "c", Severity: doctor.OK, Found: "short"},
	})
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > width || strings.ContainsRune(line, 0x1b) || strings.TrimRight(line, " ") != line {
			t.Errorf("a line of %d: %q", utf8.RuneCountInString(line), line)
		}
	}
	if !strings.Contains(b.String(), "\nwarning   connections  short\n\n") || !strings.HasSuffix(b.String(), "\nok        c            short\n\n1 critical, 2 warnings, 1 ok\n") {
		t.Errorf("printed\n%s", &b)
	}
}
