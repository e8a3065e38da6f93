//go:build linux

package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const argZamok = "__zamok" // this test binary acts as zamok run

func TestMain(m *testing.M) {
	// With the race detector a program sleeps for a second in os.Exit, which finds
	// little: here each run has two programs. A keeper has no environment.
	if code, ok := Intercept(os.Args); ok {
		syscall.Exit(code)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if len(os.Args) > 2 && os.Args[1] == argZamok {
		os.Exit(zamokMain(os.Args[2]))
	}
	// Started by nohup or in the background of a script: what the tests start
	// must not inherit that.
	for _, sig := range IgnoredAtStart() {
		signal.Notify(make(chan os.Signal, 1), sig)
	}
	// Orphans become ours, so that each test can see that it left none.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// config is what a test asks of its zamok. Durations of zero are Options' own.
type config struct {
	Argv      []string
	TTL       time.Duration // of a lease that renews itself every tenth of it. 0: no deadline
	KillAfter time.Duration
	MaxRun    time.Duration
	Ignore    bool
	Deaf      bool   // the lease's context does not end at loss, only its deadline passes
	Lose      bool   // bytes on descriptor 3 say what happens, see zamokMain
	DieAt     string // kill -9 itself at this step
	Result    string // file for the Result
	Raise     bool
}

// outcome is a Result that can be written to a file.
type outcome struct {
	Result
	Err     string
	Started bool
}

var errTaken = errors.New("taken by another")

// fakeLease renews itself, as the engine would.
type fakeLease struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	grace  time.Duration
	mu     sync.Mutex
	until  time.Time
	end    *time.Timer // ends ctx
	last   bool        // it is not renewed any more
}

func (l *fakeLease) Context() context.Context { return l.ctx }
func (l *fakeLease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

func newFakeLease(c config) *fakeLease {
	l := &fakeLease{}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if c.TTL == 0 {
		return l
	}
	l.grace = c.KillAfter * 5 / 4
	l.until = time.Now().Add(c.TTL)
	l.end = time.AfterFunc(c.TTL-l.grace, func() {
		if !c.Deaf {
			l.cancel(errors.New("not renewed"))
		}
	})
	go func() { // until the process ends
		for range time.Tick(c.TTL / 10) {
			l.renew(c.TTL)
		}
	}()
	return l
}

func (l *fakeLease) renew(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last && time.Now().Before(l.until.Add(-l.grace)) { // else it is lost
		l.until = time.Now().Add(ttl)
		l.end.Reset(ttl - l.grace)
	}
}

func (l *fakeLease) stopRenewing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = true
}

func zamokMain(arg string) int {
	var c config
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 70
	}
	lease := newFakeLease(c)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if c.Lose {
		syscall.CloseOnExec(3)
		go func() {
			for b := make([]byte, 1); ; {
				if n, _ := syscall.Read(3, b); n != 1 {
					return
				}
				switch b[0] {
				case 'r':
					lease.stopRenewing()
					fmt.Println("not renewed any more")
				case 'l': // it is renewed once more, for long
					lease.renew(time.Hour)
					lease.stopRenewing()
				case 'c':
					cancel(errors.New("enough"))
				default: // it is lost
					lease.stopRenewing()
					lease.cancel(errTaken)
				}
			}
		}()
	}
	o := Options{
		Argv: c.Argv, Lease: lease, KillAfter: c.KillAfter, MaxRun: c.MaxRun,
		Logf: func(f string, a ...any) { fmt.Fprintf(os.Stderr, "zamok: "+f+"\n", a...) },
		step: func(s string) {
			if s == c.DieAt {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	}
	if c.Ignore {
		o.OnLost = Ignore
	}
	res := Run(ctx, o)
	if c.Result != "" {
		out := outcome{Result: res, Started: res.End != NotStarted}
		if res.Err != nil {
			out.Err = res.Err.Error()
		}
		out.Result.Err = nil
		b, _ := json.Marshal(out)
		if err := os.WriteFile(c.Result, b, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if res.End == NotStarted {
		fmt.Fprintln(os.Stderr, "zamok:", res.Err)
	}
	if c.Raise {
		res.Raise()
	}
	return res.Code
}
