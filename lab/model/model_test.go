package model

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// bigBounds is the environment variable that adds the checks with larger bounds.
const bigBounds = "ZAMOK_MODELS"

// check is one model with one choice of its bounds and variants.
type check struct {
	file     string
	defines  string
	violates string // the property that must be found violated; empty: all hold
	big      bool
}

var checks = []check{
	{file: "lock.pml"},
	{file: "lock.pml", defines: "ROUNDS=1 FENCES=4"},
	{file: "lock.pml", defines: "ROUNDS=1 WITHIN=3 LOSSES=2 CRASHES=1 CRASH_HOLDER=1"},
	{file: "lock.pml", defines: "CLIENTS=3 ROUNDS=1 WITHIN=6 LOSSES=2 CRASHES=2 CRASH_HOLDER=1"},
	{file: "lock.pml", defines: "CLIENTS=3 ROUNDS=1 WITHIN=1 LOSSES=0 CRASHES=2 CRASH_HOLDER=0"},
	{file: "lock.pml", defines: "PUBLISH_REACHED", violates: "unheard"},
	{file: "lock.pml", defines: "PUBLISH_NONE", violates: "overlap"},
	{file: "lock.pml", defines: "FROM_ARRIVAL", violates: "overlap"},
	{file: "lock.pml", defines: "FROM_REPLY", violates: "overlap"},
	{file: "lock.pml", defines: "RELEASE_BLIND", violates: "overlap"},
	{file: "lock.pml", defines: "REVIVES ROUNDS=1 FENCES=4", violates: "fence"},
	{file: "lock.pml", defines: "RENEW_BLIND REVIVES", violates: "overlap"},
	{file: "lock.pml", defines: "NO_TIMER CLIENTS=3 ROUNDS=1 WITHIN=6 LOSSES=2 CRASHES=2 CRASH_HOLDER=1", violates: "starved"},

	{file: "loss.pml", defines: "LAST=7"},
	{file: "loss.pml", defines: "LAST=7 OVERLAP QUARANTINE"},
	{file: "loss.pml", defines: "LAST=7 OVERLAP", violates: "overlap"},
	{file: "loss.pml", defines: "LAST=7 OVERLAP QUARANTINE STEP", violates: "overlap"},
	{file: "loss.pml", defines: "LAST=7 COUNTER", violates: "stale"},
	{file: "loss.pml", defines: "LAST=7 COUNTER ONLY_REFUSED", violates: "refused"},
	{file: "loss.pml", defines: "LAST=7 BACK", violates: "stale"},

	{file: "quorum.pml"},
	{file: "quorum.pml", defines: "FRESH_VOTES", violates: "overlap"},
	{file: "quorum.pml", defines: "FROM_REPLY", violates: "overlap"},
	{file: "quorum.pml", defines: "ONE_RENEWED", violates: "overlap"},
	{file: "quorum.pml", defines: "RENEW_BLIND", violates: "overlap"},
	{file: "quorum.pml", defines: "STEP", violates: "overlap"},

	{file: "writeback.pml"},
	{file: "writeback.pml", defines: "NO_WRITE", violates: "fence"},
	{file: "writeback.pml", defines: "WRITE_ALL", violates: "fence"},
	{file: "writeback.pml", defines: "FENCE_MOVES", violates: "fence"},
	{file: "writeback.pml", defines: "LATE_COUNTS", violates: "fence"},
	{file: "writeback.pml", defines: "COUNTER", violates: "fence"},

	{file: "lock.pml", defines: "ROUNDS=1 FENCES=6", big: true},
	{file: "loss.pml", defines: "LAST=10 OVERLAP QUARANTINE", big: true},
}

// said is what the assertion of each property reads like in pan's words.
var said = map[string]*regexp.Regexp{
	"overlap": regexp.MustCompile(`valid\[|state\[\(1-c\)\]`),
	"fence":   regexp.MustCompile(`highest|value\[\(3\+2\)\]`),
	"unheard": regexp.MustCompile(`hears`),
	"starved": regexp.MustCompile(`idle<=`),
	"stale":   regexp.MustCompile(`order\[c\]>high_order`),
	"refused": regexp.MustCompile(`order\[c\]<high_order`),
}

func TestModels(t *testing.T) {
	big := os.Getenv(bigBounds) == "big"
	for _, c := range checks {
		if c.big && !big {
			continue
		}
		t.Run(strings.TrimSpace(c.file+" "+c.defines), func(t *testing.T) { c.run(t) })
	}
}

var (
	errorsFound = regexp.MustCompile(`errors: (\d+)`)
	stored      = regexp.MustCompile(`(?m)^ *(\S+) states, stored`)
	violated    = regexp.MustCompile(`assertion violated (.*) \(at depth`)
)

// run builds the checker for a model and runs it, one at a time: a big one takes
// some GiB. Its limits are of memory and depth, and a search that met one of them
// has not visited every state, so it fails.
func (c check) run(t *testing.T) {
	file, err := filepath.Abs(c.file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{"-a"}
	for d := range strings.FieldsSeq(c.defines) {
		args = append(args, "-D"+d)
	}
	must(t, dir, "spin", append(args, file)...)
	must(t, dir, "cc", "-O1", "-w", "-DSAFETY", "-DMEMLIM=3500", "-o", "pan", "pan.c")
	begin := time.Now()
	out := must(t, dir, "./pan", "-m200000", "-w22")
	took := time.Since(begin)

	found := errorsFound.FindStringSubmatch(out)
	states := stored.FindStringSubmatch(out)
	if found == nil || states == nil || strings.Contains(out, "max search depth too small") || strings.Contains(out, "out of memory") {
		t.Fatalf("the search is not complete:\n%s", out)
	}
	says := "holds"
	if v := violated.FindStringSubmatch(out); v != nil {
		says = v[1]
	}
	if c.violates == "" && found[1] != "0" {
		t.Errorf("violated: %s\n%s", says, out)
	}
	if c.violates != "" && !said[c.violates].MatchString(says) {
		t.Errorf("%s must be violated, but it says: %s", c.violates, says)
	}
	if c.violates != "" {
		says = "violates " + c.violates
	}
	t.Logf("%-100s %-18s %12s states %6.1fs", c.file+" "+c.defines, says, states[1], took.Seconds())
}

// must runs a command and returns what it printed.
func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v (scripts/setup installs spin and a C compiler)\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
