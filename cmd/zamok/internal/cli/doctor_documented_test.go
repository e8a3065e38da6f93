package cli

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/inspect/doctor"
	"github.com/zamok-go/zamok/zamokgoredis"
)

// documentedFile are the arguments of a server that has the file of docs/deployments.md
// under that heading.
func documentedFile(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/deployments.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	_, file, _ := strings.Cut(part, "\n```conf\n")
	file, _, ok := strings.Cut(file, "```")
	if !ok {
		t.Fatalf("docs/deployments.md has no file under %q", heading)
	}
	var args []string
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		args = append(append(args, "--"+words[0]), words[1:]...)
	}
	return args
}

// On servers that have the files of docs/deployments.md there is nothing to find, but
// that one server has no replica, and that members of a quorum may lose a second.
func TestDoctorDocumentedDeployments(t *testing.T) {
	t.Parallel()
	for heading, start := range map[string]func(t *testing.T, args []string) *drivertest.Server{
		"One server": func(t *testing.T, args []string) *drivertest.Server { return drivertest.StartServer(t, args...) },
		"Sentinel": func(t *testing.T, args []string) *drivertest.Server {
			return drivertest.StartSentinel(t, 3, 1, args...).Primary()
		},
		"Quorum": func(t *testing.T, args []string) *drivertest.Server { return drivertest.StartServer(t, args...) },
	} {
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			s := start(t, documentedFile(t, heading))
			alone := heading == "One server" || heading == "Quorum"
			if !alone {
				awaitServer(t, "the replica", func() bool { return infoLine(s, "replication", "min_slaves_good_slaves:1") })
			}
			addUser(s, "ops", doctor.Rights(""), doctor.RightsToLook())
			for _, f := range examined(t, s, "ops", doctor.Config{}) {
				noReplica := alone && f.Check == "replicas" && f.Severity == doctor.Note
				everySecond := heading == "Quorum" && f.Check == "persistence" && f.Severity == doctor.Note
				ofMachine := f.Check == "latency" || f.Check == "pauses" || f.Check == "clock"
				if f.Severity != doctor.OK && !ofMachine && !noReplica && !everySecond {
					t.Errorf("found: %+v", f)
				}
			}
		})
	}
}

// Nor is there on the primaries of such a cluster.
func TestDoctorDocumentedCluster(t *testing.T) {
	t.Parallel()
	c := drivertest.StartCluster(t, 3, 1, documentedFile(t, "Cluster")...)
	var primaries []string
	for _, s := range c.Nodes() {
		addUser(s, "ops", doctor.Rights(""), doctor.RightsInCluster(), doctor.RightsToLook(), []string{"+cluster|slots", "+cluster|shards"})
		if drivertest.Role(s) == "master" {
			primaries = append(primaries, s.Addr())
			awaitServer(t, "the replica", func() bool { return infoLine(s, "replication", "min_slaves_good_slaves:1") })
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Username: "ops", Password: "not-a-secret", DisableIdentity: true})
	defer client.Close()
	found, err := examineCluster(t.Context(), zamokgoredis.New(client), client, &doctor.Config{Measure: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if ofMachine := f.Check == "latency" || f.Check == "pauses" || f.Check == "clock"; f.Severity != doctor.OK && !ofMachine {
			t.Errorf("found: %+v", f)
		}
	}
	for _, addr := range primaries {
		if !slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Member == addr && f.Check == "persistence" }) {
			t.Errorf("%s was not looked at", addr)
		}
	}
}

// A primary that is cut off must have stopped before Sentinel replaces it.
func TestDocumentedSentinelWaitsLongEnough(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/deployments.md")
	if err != nil {
		t.Fatal(err)
	}
	number := func(setting string) int {
		m := regexp.MustCompile("(?m)^" + setting + " ([0-9]+)$").FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("docs/deployments.md does not say %s", setting)
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	if lag, down := number("min-replicas-max-lag"), number("sentinel down-after-milliseconds main"); lag*1000 >= down {
		t.Errorf("min-replicas-max-lag %d, down-after-milliseconds %d", lag, down)
	}
}
