package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTotals(t *testing.T) {
	for _, c := range []struct {
		name, events, want, says string
	}{
		{
			"counts tests and subtests",
			`{"Action":"pass","Package":"p","Test":"TestA/x"}
			 {"Action":"pass","Package":"p","Test":"TestA"}
			 {"Action":"skip","Package":"p","Test":"TestB"}
			 {"Action":"pass","Package":"p","Elapsed":0.2}`,
			"2 passed, 0 failed, 1 skipped", "ok    p 0.2s",
		},
		{
			"shows what a failed test said, and only that",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: bad\n"}
			 {"Action":"output","Package":"p","Test":"TestB","Output":"quiet\n"}
			 {"Action":"fail","Package":"p","Test":"TestA"}
			 {"Action":"pass","Package":"p","Test":"TestB"}
			 {"Action":"fail","Package":"p"}`,
			"1 passed, 1 failed, 0 skipped", "a_test.go:1: bad",
		},
		{
			"a package that fails without a failed test is a failure",
			`{"Action":"build-output","ImportPath":"p","Output":"p.go:1: syntax error\n"}
			 {"Action":"fail","Package":"p"}`,
			"0 passed, 1 failed, 0 skipped", "syntax error",
		},
		{
			"a package that panics in the middle of a test is a failure",
			`{"Action":"run","Package":"p","Test":"TestA"}
			 {"Action":"output","Package":"p","Output":"panic: no\n"}
			 {"Action":"fail","Package":"p"}`,
			"0 passed, 1 failed, 0 skipped", "panic: no",
		},
		{
			"what a test said that was under way when its program ended is shown",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"SIGSEGV\\n"}
			 {"Action":"output","Package":"q","Test":"TestA","Output":"quiet\\n"}
			 {"Action":"fail","Package":"p"}`,
			"0 passed, 1 failed, 0 skipped", "TestA did not end\nSIGSEGV",
		},
		{"what is no event is shown", "go: no such module\n", "0 passed, 0 failed, 0 skipped", "go: no such module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got totals
			var out strings.Builder
			got.read(strings.NewReader(c.events), &out)
			if got.String() != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !strings.Contains(out.String(), c.says) || strings.Contains(out.String(), "quiet") {
				t.Errorf("it said %q, want %q in it and nothing of a test that passed", out.String(), c.says)
			}
		})
	}
}

func TestServersReport(t *testing.T) {
	m := matrix{}
	cases, rights := suites[4], suites[2]
	for _, e := range []event{
		{Action: "pass", Test: "TestCase01/goredis"},
		{Action: "pass", Test: "TestSentinelMoves/rueidis"},
		{Action: "fail", Test: "TestCase02/goredis"},
		{Action: "fail", Test: "TestCase02/rueidis"},
		{Action: "skip", Test: "TestCase03"},
	} {
		m.add(cases, e)
	}
	m.add(rights, event{Action: "fail"})
	version := named([]byte("Valkey server v=9.1.2 sha=00000000:0 malloc=jemalloc-5.3.1\n"))
	row := m.row("valkey-forky", version, time.Unix(0, 0))
	want := "| valkey-forky | Valkey 9.1.2 | 1970-01-01 | – | – | 0 passed, 1 failed: the package | – | " +
		"1 passed, 1 skipped, 2 failed: TestCase02 | 1 passed | – |"
	if row != want {
		t.Errorf("got  %s\nwant %s", row, want)
	}

	report := filepath.Join(t.TempDir(), "servers.md")
	if err := os.WriteFile(report, []byte("# Servers\n| redis | old |\n| valkey-forky | old |\n\nMore.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(report, row); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(report); string(text) != "# Servers\n| redis | old |\n"+want+"\n\nMore.\n" {
		t.Errorf("the report is now\n%s", text)
	}
	if err := write(report, "| valkey | new |"); err == nil {
		t.Error("a server without a row: no error")
	}
}

func TestRunFails(t *testing.T) {
	var out strings.Builder
	if code := run([]string{"no/such/module"}, &out, &out); code != 1 {
		t.Errorf("exit code %d for a module that is not there, want 1: %s", code, out.String())
	}
	if code := run(nil, &out, &out); code != 1 {
		t.Errorf("exit code %d when no test ran, want 1", code)
	}
}
