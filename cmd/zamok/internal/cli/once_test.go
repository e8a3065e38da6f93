package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/once"
)

// Why nothing ran: what no script can bring about at will.
func TestWhyOnceDidNotRun(t *testing.T) {
	f := &onceFlags{key: "k", policy: "give-up"}
	f.name, f.conflict, f.missed = "once/k", 75, "another run has not ended"
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	defer a.talk.close()
	for _, c := range []struct {
		err  error
		code int
		text string
		hint string
	}{
		{fmt.Errorf("zamok: once: it did not run: %w", zamok.ErrUnknown), 69, "once: it did not run", "--forget k"},
		{&zamok.UnavailableError{Hint: "h", Err: errors.New("EOF")}, 69, "EOF", "h"},
		{&zamok.HeldError{Name: "once/k", Holder: zamok.Holder{Host: "h", PID: 7, Token: "t"}}, 75, "another run has not ended", "zamok show"},
		{&once.FailedError{Text: "exit code 0"}, 1, "exit code 0", "--forget k"},
		{&once.FailedError{Text: "exit code 256"}, 1, "exit code 256", "--resolve 0 k"},
		{&once.FailedError{Text: "exit code 42"}, 42, "exit code 42", "--forget k"},
		{&interrupted{syscall.SIGTERM}, 143, "stopped waiting", ""},
		{errors.New("zamok: junk"), 78, "junk", "--forget k"},
	} {
		got := explain(a.notRun(f, c.err))
		if got.code != c.code || !strings.Contains(got.Error(), c.text) || !strings.Contains(got.hint, c.hint) || strings.HasPrefix(got.Error(), "zamok: ") {
			t.Errorf("%v: %d %q, hint %q; want %d %q, hint %q", c.err, got.code, got, got.hint, c.code, c.text, c.hint)
		}
	}
}

// Its turn had come, and the command was not started.
func TestOnceNotStarted(t *testing.T) {
	f := &onceFlags{key: "k", policy: "give-up"}
	f.name = "once/k"
	lost := once.Again(&zamok.LostError{Reason: zamok.LostDeleted})
	if got := explain(f.almost(lost)); got.code != 79 || got.Error() != `lost the lock "once/k": key deleted; the command was not started` || !strings.Contains(got.hint, "--forget k") {
		t.Errorf("%d %q, hint %q", got.code, got, got.hint)
	}
	stopped := once.Again(&interrupted{syscall.SIGINT})
	if got := explain(f.almost(stopped)); got.code != 130 || !strings.Contains(got.Error(), "stopped waiting") || got.hint != "" {
		t.Errorf("%d %q, hint %q", got.code, got, got.hint)
	}
	unstored := errors.Join(stopped, &once.NotStoredError{Key: "k", Err: zamok.ErrUnavailable})
	if got := explain(f.almost(unstored)); got.code != 130 || !strings.Contains(got.hint, "--forget k") {
		t.Errorf("%d %q, hint %q", got.code, got, got.hint)
	}
}

func TestExitOfRun(t *testing.T) {
	for _, c := range []struct {
		r    child.Result
		want int
	}{
		{child.Result{Code: 3}, 3},
		{child.Result{Code: 143, End: child.MaxRun}, 124},
		{child.Result{Code: 137, End: child.Unguarded}, 70},
		{child.Result{Code: 0, End: child.Cancelled, Err: &interrupted{syscall.SIGHUP}}, 129},
	} {
		if got := exitOf(&c.r); got != c.want {
			t.Errorf("%+v is %d, want %d", c.r, got, c.want)
		}
	}
}

func TestExitInOutcome(t *testing.T) {
	for value, want := range map[string]int{`{"exit":3}`: 3, `{"exit":0}`: 0, `{}`: 0, `null`: 0, `200`: 0, `"paid"`: 0, `{"exit":"x"}`: 0} {
		if got := exitIn(json.RawMessage(value)); got != want {
			t.Errorf("%s is %d, want %d", value, got, want)
		}
	}
}

// Times are told by the server's clock, the same on all hosts.
func TestStamp(t *testing.T) {
	if got := stamp(time.Date(2026, 1, 31, 5, 0, 0, 1, time.FixedZone("", 2*3600))); got != "2026-01-31T03:00:00Z" {
		t.Error(got)
	}
}
