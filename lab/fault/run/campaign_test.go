package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/lab/fault/validate"
)

// TestMain is also the worker's main function.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// A campaign in which a server is wiped shows what nobody promises and nothing else; the
// same history is a failure where that is promised, and is kept then.
func TestCampaign(t *testing.T) {
	var said bytes.Buffer
	dir := t.TempDir()
	p := Plan{Deployment: "single", Faults: []string{"flush-all", "reset"}, Seed: 1, For: 2 * time.Second, Workers: 2, Expect: overlap}
	found, err := p.resolve()
	if err != nil {
		t.Fatal(err)
	}
	c := &campaign{plan: p, resolved: found, say: &said, dir: dir}
	server, injected, err := c.act(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(server, " ") {
		t.Errorf("the server is %q", server)
	}
	if injected["flush-all"] == 0 || injected["reset"] == 0 {
		t.Errorf("faults: %v", injected)
	}
	c.broken = nil
	strict := &Result{Plan: p, Expected: make(map[validate.Property]int)}
	c.judge(strict)
	if len(strict.Faulty) == 0 || strict.OK() {
		t.Errorf("nothing is wrong with it: %+v", strict.Checked)
	}
	text, err := os.ReadFile(filepath.Join(dir, "found.txt"))
	if err != nil || !strings.Contains(string(text), "-deployment single -faults flush-all,reset -seed 1 -for 2s -workers 2") {
		t.Errorf("it does not say what plays it again: %s, %v", text, err)
	}

	c.broken = found.broken
	res := &Result{Plan: p, Expected: make(map[validate.Property]int)}
	c.judge(res)
	if !res.OK() || res.Expected[validate.Exclusion] == 0 {
		t.Errorf("%s", said.String())
	}
}
