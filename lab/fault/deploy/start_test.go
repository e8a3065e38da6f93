package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/lab/fault/deploy"
)

func start(t *testing.T, name string) *deploy.Deployment {
	t.Helper()
	k, err := deploy.KindOf(name)
	if err != nil {
		t.Fatal(err)
	}
	host := deploy.NewHost(t.TempDir(), os.Stderr)
	t.Cleanup(host.Close)
	d, err := deploy.Start(host, k, 2)
	if errors.Is(err, deploy.ErrNotHere) {
		t.Logf("%s: %v", name, err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Whoever is in a space reaches the server until the cable is pulled, and again when it
// is put back.
func TestSpaceIsCutOff(t *testing.T) {
	d := start(t, "spaces")
	if d == nil {
		return // it has said why
	}
	reached := func(worker int) bool {
		host, port, _ := strings.Cut(d.Addrs(worker)[0], ":")
		text := "exec 3<>/dev/tcp/" + host + "/" + port + " && echo PING >&3 && head -c 5 <&3"
		args := d.Spaces[worker].Command("timeout", "2", "bash", "-c", text)
		out, _ := exec.Command(args[0], args[1:]...).Output()
		return string(out) == "+PONG"
	}
	sometime := func(worker int) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !reached(worker); {
			if time.Now().After(limit) {
				t.Fatalf("worker %d does not reach the server", worker)
			}
		}
	}
	sometime(0)
	sometime(1)
	if err := d.Spaces[0].Cut(); err != nil {
		t.Fatal(err)
	}
	if reached(0) {
		t.Error("not cut off")
	}
	sometime(1)
	if err := d.Spaces[0].Mend(); err != nil {
		t.Fatal(err)
	}
	sometime(0)
}

// What is fatal to a helper is an error here, and cleanups run all the same.
func TestHost(t *testing.T) {
	h := deploy.NewHost(t.TempDir(), os.Stderr)
	var order []string
	h.Cleanup(func() { order = append(order, "first") })
	h.Cleanup(func() { h.Errorf("bad"); order = append(order, "never") })
	h.Setenv("ZAMOK_TRIED", "yes")
	if err := h.Try(func() { h.Fatalf("no %s", "way") }); err == nil || err.Error() != "no way" {
		t.Errorf("%v", err)
	}
	if err := h.Try(func() {}); err != nil || os.Getenv("ZAMOK_TRIED") != "yes" {
		t.Error(err)
	}
	h.Close()
	if _, set := os.LookupEnv("ZAMOK_TRIED"); set || len(order) != 1 {
		t.Errorf("after Close: %v", order)
	}
}
