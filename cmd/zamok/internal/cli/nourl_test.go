package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runApp runs the program within the test, with another default server: the
// real default port may well be in use on a developer's machine.
func runApp(t *testing.T, defaultURL string, args ...string) (code int, stderr string) {
	t.Helper()
	t.Setenv("ZAMOK_REDIS", "")
	t.Setenv("REDIS_URL", "")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file := filepath.Join(t.TempDir(), "stderr")
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a := newApp(null, null, w)
	a.defaultURL = defaultURL
	code = a.run(context.Background(), args)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(b)
}

// Without a URL and without a server on the default port there is no lock: the
// command does not run.
func TestCase58NoURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := "redis://" + l.Addr().String()
	l.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	code, said := runApp(t, free, "run", "a", "--", "touch", ran)
	if code != 69 {
		t.Errorf("exit code %d, want 69", code)
	}
	for _, want := range []string{"no URL of a server was given", free, "connection refused", "--redis URL or set ZAMOK_REDIS", "serves only `zamok demo`"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in what was said:\n%s", want, said)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran without a lock")
	}
}

// A bug says how to report it, and without the secrets that it may have met.
func TestPanicIsReported(t *testing.T) {
	old := os.Stderr
	defer func() { os.Stderr = old }()
	file := filepath.Join(t.TempDir(), "stderr")
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a := newApp(w, w, w)
	a.talk.hide("hunter2")
	a.defaultURL = "\x00"
	code := func() (code int) {
		defer a.recovered(&code)
		panic("bad redis://:other@h hunter2")
	}()
	a.talk.close()
	b, _ := os.ReadFile(file)
	if said := string(b); code != 70 || !strings.Contains(said, "please report") || strings.Contains(said, "hunter2") || strings.Contains(said, "other@") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
