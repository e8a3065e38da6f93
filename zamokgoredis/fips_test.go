package zamokgoredis

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A program that runs with GODEBUG=fips140=only panics when anything computes
// SHA-1, as the library's own helper for scripts does. The setting is read when
// a program starts, so this test starts the suite once more.
func TestFIPSOnly(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestDriver$/^(Replies|EvalAllOrder|Messages|ScriptFlush|SubscriptionKilled)$", "-test.v")
	cmd.Env = append(os.Environ(), "GODEBUG=fips140=only")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: TestDriver/") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}
