package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/zamok-go/zamok"

// packageRule says what a package may import. Of ours: folders of this
// repository. Of others: module paths.
type packageRule struct {
	ours   []string
	others []string
	tests  []string // ours, in _test.go files beside that
	tools  []string // of others, in _test.go files beside that
}

// helpers are what tests of the engine and of what stands on it may use besides.
var helpers = []string{"driver/memory", "zamoktest", "."}

// rules is the import table. Arrows point down only:
//
//	programs → built on leases → the engine → wake → lua, keys, token → driver
//
// A folder that is not in it may not exist: a new package must say where it
// stands.
var rules = map[string]packageRule{
	// The seam and its implementations.
	"driver":             {},
	"driver/drivertest":  {ours: []string{"driver"}},
	"driver/memory":      {ours: []string{"driver", "internal/model"}, tests: []string{"driver/drivertest", "internal/lua"}},
	"zamokgoredis":       {ours: []string{"driver"}, others: []string{"github.com/redis/go-redis"}, tests: []string{"driver/drivertest", "."}},
	"zamokrueidis":       {ours: []string{"driver"}, others: []string{"github.com/redis/rueidis"}, tests: []string{"driver/drivertest", "."}},
	"internal/keys":      {},
	"internal/token":     {},
	"internal/lua":       {ours: []string{"driver"}},
	"internal/model":     {ours: []string{"driver"}, tests: []string{"internal/lua"}},
	"internal/proc":      {},
	"internal/wake":      {ours: []string{"driver"}, tests: []string{"driver/memory"}},
	"internal/archtest":  {},
	"internal/gotest":    {},
	"internal/relcheck":  {},
	".":                  {ours: []string{"driver", "internal/keys", "internal/lua", "internal/proc", "internal/token", "internal/wake"}, tests: helpers},
	"zamoktest":          {ours: []string{".", "driver", "driver/memory"}},
	"inspect":            {ours: []string{".", "driver", "internal/keys", "internal/lua", "internal/proc", "internal/token"}, tests: helpers},
	"inspect/doctor":     {ours: []string{".", "driver", "internal/keys", "internal/lua"}, tests: append([]string{"driver/drivertest"}, helpers...)},
	"once":               {ours: []string{".", "internal/keys", "internal/token"}, tests: append([]string{"once/oncetest", "driver"}, helpers...)},
	"once/oncetest":      {ours: []string{"driver/memory"}},
	"cmd/zamok":          {ours: []string{"cmd/zamok/internal"}, tests: []string{"driver/drivertest"}, tools: []string{"github.com/rogpeppe/go-internal"}},
	"cmd/zamok/internal": {ours: []string{".", "driver", "driver/memory", "inspect", "inspect/doctor", "once", "zamokgoredis", "cmd/zamok/internal"}, others: cliModules, tests: []string{"driver/drivertest", "zamoktest"}, tools: []string{"github.com/creack/pty", "github.com/rogpeppe/go-internal"}},
	// The lab is never published. It looks into everything and compares with
	// everything, so it has no rule but that nobody imports it.
	"lab": {ours: []string{"*"}, others: []string{"*"}},
}

// cliModules are what the binary stands on. It is a program, so they reach no
// user of the library.
var cliModules = []string{
	"github.com/redis/go-redis", "github.com/spf13/cobra", "github.com/spf13/pflag",
	"golang.org/x/sys", "golang.org/x/term",
}

// ruleFor finds the rule of a folder: its own, or for the insides of a module
// that of the nearest folder above.
func ruleFor(dir string) (packageRule, bool) {
	for _, above := range []string{"cmd/zamok/internal", "lab"} {
		if dir == above || strings.HasPrefix(dir, above+"/") {
			return rules[above], true
		}
	}
	r, ok := rules[dir]
	return r, ok
}

// importComplaints holds a file to the table.
func importComplaints(f *goFile) []string {
	rule, ok := ruleFor(f.dir())
	if !ok {
		return []string{fmt.Sprintf("%s: folder %s is not in the import table of internal/archtest", f.path, f.dir())}
	}
	allowed, others := rule.ours, rule.others
	if f.isTest() {
		others = slices.Concat(rule.others, rule.tools)
		allowed = slices.Concat(rule.ours, rule.tests, []string{f.dir()})
	}
	var complaints []string
	for _, path := range f.imports() {
		if !importAllowed(path, allowed, others) {
			complaints = append(complaints, fmt.Sprintf("%s imports %s, which its place in the import table does not allow", f.path, path))
		}
	}
	return complaints
}

func importAllowed(path string, ours, others []string) bool {
	if path == modulePath {
		return slices.Contains(ours, ".") || slices.Contains(ours, "*")
	}
	if dir, ok := strings.CutPrefix(path, modulePath+"/"); ok {
		if dir == "lab" || strings.HasPrefix(dir, "lab/") {
			return slices.Contains(ours, "*")
		}
		return slices.ContainsFunc(ours, func(o string) bool {
			return o == "*" || o == dir || o == "cmd/zamok/internal" && strings.HasPrefix(dir, o+"/")
		})
	}
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		return path != "C" // the standard library
	}
	return slices.ContainsFunc(others, func(o string) bool {
		return o == "*" || o == path || strings.HasPrefix(path, o+"/")
	})
}

func TestImports(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range goFiles(t) {
		report(t, importComplaints(f))
		seen[f.dir()] = true
	}
	for dir := range rules {
		if !seen[dir] && dir != "cmd/zamok/internal" && dir != "lab" {
			t.Errorf("the import table names %s, which is not there", dir)
		}
	}
}

func TestImportRulesHaveTeeth(t *testing.T) {
	for _, c := range []struct {
		path, imports string
		bad           bool
	}{
		{"lease.go", modulePath + "/driver", false},
		{"lease.go", modulePath + "/driver/memory", true},
		{"lease_test.go", modulePath + "/driver/memory", false},
		{"lease.go", "github.com/redis/rueidis", true},
		{"lease_test.go", "github.com/stretchr/testify/assert", true},
		{"lease.go", "C", true},
		{"lease.go", "golang.org/x/sync/errgroup", true},
		{"driver/driver.go", modulePath, true},
		{"driver/driver.go", modulePath + "/internal/keys", true},
		{"driver/driver_test.go", modulePath, true},
		{"internal/lua/lua.go", modulePath, true},
		{"internal/wake/wake.go", modulePath + "/internal/model", true},
		{"zamokgoredis/driver.go", modulePath, true},
		{"zamokgoredis/driver.go", modulePath + "/internal/lua", true},
		{"zamokgoredis/driver.go", "github.com/redis/go-redis/v9", false},
		{"zamokgoredis/driver.go", "github.com/redis/rueidis", true},
		{"zamokrueidis/driver.go", "github.com/redis/rueidis/rueidiscompat", false},
		{"zamokrueidis/driver.go", "github.com/redis/rueidislock", true},
		{"cmd/zamok/main.go", modulePath + "/cmd/zamok/internal/cli", false},
		{"cmd/zamok/main.go", modulePath, true},
		{"cmd/zamok/internal/cli/run.go", modulePath + "/internal/keys", true},
		{"cmd/zamok/internal/cli/run.go", modulePath + "/inspect", false},
		{"cmd/zamok/internal/cli/run.go", "github.com/creack/pty", true},
		{"cmd/zamok/internal/cli/run_test.go", "github.com/creack/pty", false},
		{"inspect/inspect.go", modulePath + "/lab/itest", true},
		{"lab/itest/case_test.go", modulePath + "/lab/fault", false},
		{"newpackage/new.go", "fmt", true},
	} {
		f := parse(t, c.path, "package p\n\nimport _ \""+c.imports+"\"\n")
		if got := importComplaints(f); (len(got) > 0) != c.bad {
			t.Errorf("%s importing %s: complaints %q, want some: %v", c.path, c.imports, got, c.bad)
		}
	}
}

// requirements returns the complaints about the root module's go.mod: a user of
// the library must never have the version of a dependency, or the go line, raised
// by a part that it does not use.
func requirements(goMod string) []string {
	var complaints []string
	for line := range strings.Lines(goMod) {
		switch f := strings.Fields(line); {
		case len(f) == 0, f[0] == "module":
		case f[0] == "go" && len(f) == 2 && f[1] == "1.25":
		default:
			complaints = append(complaints, fmt.Sprintf("the root go.mod has the line %q; it may have module and go 1.25 alone", strings.TrimSpace(line)))
		}
	}
	return complaints
}

func TestRootRequiresNothing(t *testing.T) {
	report(t, requirements(read(t, "go.mod")))
	if slices.Contains(repoFiles(t, "go.sum"), "go.sum") {
		t.Error("the root module has a go.sum, so it requires something")
	}
	for _, bad := range []string{
		"module m\n\ngo 1.25\n\nrequire github.com/redis/rueidis v1.0.19\n",
		"module m\n\ngo 1.26\n",
		"module m\n\ngo 1.25\n\ntoolchain go1.26.0\n",
		"module m\n\ngo 1.25\n\ntool example.com/t\n",
	} {
		if len(requirements(bad)) == 0 {
			t.Errorf("no complaint about %q", bad)
		}
	}
}
