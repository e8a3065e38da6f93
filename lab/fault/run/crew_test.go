package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell makes workers of a script, which is told a file to write when it has begun.
func shell(dir, script string) func(int, string) (*exec.Cmd, []byte) {
	return func(_ int, proc string) (*exec.Cmd, []byte) {
		return exec.Command("sh", "-c", script, "sh", filepath.Join(dir, proc+".up")), nil
	}
}

const (
	obedient = `: > "$1"; cat > /dev/null`
	deafOne  = `trap '' QUIT; : > "$1"; while :; do sleep 0.02; done`
)

func up(t *testing.T, dir, proc string) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, proc+".up")); err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s does not begin", proc)
		}
	}
}

// One that is killed is started again under another name; all end when told to.
func TestCrewLives(t *testing.T) {
	dir := t.TempDir()
	c, err := startCrew(dir, 2, shell(dir, obedient))
	if err != nil {
		t.Fatal(err)
	}
	up(t, dir, "worker-0-1")
	up(t, dir, "worker-1-1")
	if c.Len() != 2 || c.Proc(1) != "worker-1-1" || !c.Signal("worker-1-1", syscall.SIGKILL) {
		t.Errorf("%d workers, %s", c.Len(), c.Proc(1))
	}
	up(t, dir, "worker-1-2")
	if c.Signal("worker-1-1", syscall.SIGKILL) || c.Proc(1) != "worker-1-2" {
		t.Error("the dead one lives")
	}
	if err := c.stop(30 * time.Second); err != nil {
		t.Error(err)
	}
}

// One that fails, and one that does not end, are told.
func TestCrewFails(t *testing.T) {
	for script, want := range map[string]string{`: > "$1"; exit 3`: "exit status 3", deafOne: "did not end"} {
		dir := t.TempDir()
		c, err := startCrew(dir, 1, shell(dir, script))
		if err != nil {
			t.Fatal(err)
		}
		up(t, dir, "worker-0-1")
		if err := c.stop(300 * time.Millisecond); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
}
