package itest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/driver/memory"
	"github.com/zamok-go/zamok/once"
	"github.com/zamok-go/zamok/once/oncetest"
)

// policyEnv tells a child of role once its policy.
const policyEnv = "ZAMOK_ITEST_POLICY"

func newOnce(t testing.TB, c *zamok.Client, policy once.Policy) *once.Once {
	t.Helper()
	o, err := once.New(c, &once.Config{Policy: policy, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// onceChild does "pay" once, and in its function what it is told.
func onceChild(c *zamok.Client) error {
	o, err := once.New(c, &once.Config{Policy: once.Policy(os.Getenv(policyEnv)), Retention: time.Hour})
	if err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	out, err := once.Do(context.Background(), o, "pay", func(ctx context.Context, run once.Run) (string, error) {
		fmt.Println("run", run.Attempt, run.ID)
		for orders.Scan() && orders.Text() != "finish" {
			fmt.Println("err", kind(ctx.Err()), kind(context.Cause(ctx)))
		}
		return "child", nil
	})
	fmt.Println("did", out.Value, out.Replayed, errors.Is(err, once.ErrNotStored), kind(err))
	for orders.Scan() {
	}
	return nil
}

const (
	payLock   = "lock:once/pay"
	payRecord = "zamok:once:{lock:once/pay}"
)

func ofRecord(args []string) bool { return isCall(args) && slices.Contains(args, payRecord) }

// ofRelease matches the release of the lock: no other call about it has four keys
// once it is held.
func ofRelease(args []string) bool {
	return isCall(args) && len(args) > 3 && args[2] == "4" && args[3] == payLock && !ofRecord(args)
}

// killPoint is a moment at which a process is killed.
type killPoint struct {
	name    string
	fault   func(*drivertest.Proxy, drivertest.Match) *drivertest.Fault // nil: none, it is killed in its function or after all
	match   drivertest.Match
	runs    bool                   // its function begins before that
	ends    bool                   // … and is told to return
	left    map[once.Policy]string // what the next caller gets: "second" (it runs), "child", or "interrupted"
	arrives bool                   // what was held reaches the server when all is over
}

func killPoints() []killPoint {
	both := func(s string) map[once.Policy]string { return map[once.Policy]string{once.GiveUp: s, once.Retry: s} }
	unknown := map[once.Policy]string{once.GiveUp: "interrupted", once.Retry: "second"}
	hold, holdReply := (*drivertest.Proxy).Hold, (*drivertest.Proxy).HoldReply
	return []killPoint{
		{name: "before the begin is stored", fault: hold, match: ofRecord, left: both("second")},
		{name: "before the begin is stored, which arrives late", fault: hold, match: ofRecord, left: both("second"), arrives: true},
		{name: "when the begin is stored", fault: holdReply, match: ofRecord, left: unknown},
		{name: "in the function", runs: true, left: unknown},
		{name: "before the end is stored", fault: hold, match: ofRecord, runs: true, ends: true, left: unknown},
		{name: "before the end is stored, which arrives late", fault: hold, match: ofRecord, runs: true, ends: true, left: unknown, arrives: true},
		{name: "when the end is stored", fault: holdReply, match: ofRecord, runs: true, ends: true, left: both("child")},
		{name: "before the release", fault: hold, match: ofRelease, runs: true, ends: true, left: both("child")},
		{name: "after all", runs: true, ends: true, left: both("child")},
	}
}

func TestOnceKilledAtEveryPoint(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		for _, policy := range []once.Policy{once.GiveUp, once.Retry} {
			for _, p := range killPoints() {
				t.Run(string(policy)+"/"+p.name, func(t *testing.T) {
					t.Parallel()
					killedAt(t, lib, policy, p)
				})
			}
		}
	})
}

func killedAt(t *testing.T, lib library, policy once.Policy, p killPoint) {
	s := startServer(t)
	way := drivertest.StartProxy(t, s.Addr())
	var fault *drivertest.Fault
	arm := func() {
		if p.fault != nil {
			fault = p.fault(way, p.match)
		}
	}
	if !p.runs {
		arm()
	}
	child := start(t, lib, way.URL(), "once", policyEnv+"="+string(policy))
	var id string
	if p.runs {
		_, id, _ = strings.Cut(child.expect("run"), " ")
		arm()
		if p.ends {
			child.say("finish")
		}
	}
	switch {
	case fault != nil:
		receive(t, fault.Fired(), "request of the child")
	case p.ends:
		child.expect("did")
	}
	child.kill()
	for len(child.lines) > 0 {
		t.Errorf("the child says %q", <-child.lines)
	}
	afterKill(t, s, lib, policy, p, id)
	if p.arrives {
		before := s.get(t, payRecord)
		fault.Release()
		within(t, patience, "what was held has been answered", func() bool { return way.Conns() == 0 })
		if after := s.get(t, payRecord); after != before {
			t.Errorf("a dead process made %s of %s", after, before)
		}
	}
}

// afterKill has two more calls, and checks what they get, and who ran.
func afterKill(t *testing.T, s server, lib library, policy once.Policy, p killPoint, id string) {
	t.Helper()
	c := lib.client(t, s.URL(), nil)
	want := p.left[policy]
	for i := range 2 {
		ran := false
		out, err := once.Do(t.Context(), newOnce(t, c, policy), "pay", func(_ context.Context, run once.Run) (string, error) {
			ran = true
			if id != "" && run.ID != id {
				t.Errorf("id %s, the child's was %s", run.ID, id)
			}
			return "second", nil
		})
		switch {
		case ran != (want == "second" && i == 0):
			t.Errorf("call %d: ran %v, want %s", i, ran, want)
		case want == "interrupted":
			var e *once.InterruptedError
			if !errors.As(err, &e) || id != "" && e.ID != id || time.Since(e.Began).Abs() > time.Minute {
				t.Errorf("call %d: %q, %v", i, out.Value, err)
			}
		case err != nil || out.Value != want || out.Replayed == ran:
			t.Errorf("call %d: %+v, %v, want %s", i, out, err, want)
		}
	}
	if s.pttl(t, payRecord) <= 0 {
		t.Error("the record has no TTL")
	}
}

// A process is stopped in its function for longer than its lease, and wakes.
func TestOnceStoppedProcess(t *testing.T) {
	each(t, func(t *testing.T, lib library) {
		for policy, want := range map[once.Policy]string{once.GiveUp: "", once.Retry: "second"} {
			t.Run(string(policy), func(t *testing.T) {
				t.Parallel()
				s := startServer(t)
				child := start(t, lib, s.URL(), "once", policyEnv+"="+string(policy))
				child.expect("run")
				child.signal(syscall.SIGSTOP)
				o := newOnce(t, lib.client(t, s.URL(), nil), policy)
				second := func(context.Context, once.Run) (string, error) { return "second", nil }
				out, err := once.Do(t.Context(), o, "pay", second)
				if out.Value != want || errors.Is(err, once.ErrInterrupted) != (want == "") {
					t.Errorf("the second: %q, %v", out.Value, err)
				}
				child.signal(syscall.SIGCONT)
				child.say("err")
				if how := child.expect("err"); how != "canceled lost" {
					t.Errorf("the child's context ended with %s", how)
				}
				child.say("finish")
				if how := child.expect("did"); how != "child false true lost" {
					t.Errorf("the child: %s", how)
				}
				out, err = once.Do(t.Context(), o, "pay", second)
				if out.Value != want || errors.Is(err, once.ErrInterrupted) != (want == "") {
					t.Errorf("afterwards: %+v, %v", out, err)
				}
			})
		}
	})
}

// The script and its twin of package oncetest: the same calls on a server, in a
// cluster, and in memory.
func TestOnceEverywhere(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		s := memory.New()
		oncetest.Define(s)
		onceTour(t, clientOn(t, s, nil))
	})
	each(t, func(t *testing.T, lib library) {
		for name, start := range map[string]func(*testing.T) server{
			"server":  func(t *testing.T) server { return startServer(t) },
			"cluster": startShard,
		} {
			t.Run(name, func(t *testing.T) {
				s := start(t)
				d := &slots{Driver: lib.new(t, s.URL())}
				onceTour(t, clientOn(t, d, nil))
				onceTour(t, clientOn(t, d, &zamok.Config{Prefix: "{app}:"}))
				d.check(t)
				for _, key := range s.keys(t) {
					if strings.Contains(key, "zamok:once:") && s.pttl(t, key) <= 0 {
						t.Errorf("%s has no TTL", key)
					}
				}
			})
		}
	})
}

func onceTour(t *testing.T, c *zamok.Client) {
	t.Helper()
	ctx, o := t.Context(), newOnce(t, c, once.GiveUp)
	bad := errors.New("no")
	give := func(value string, err error) func(context.Context, once.Run) (string, error) {
		return func(context.Context, once.Run) (string, error) { return value, err }
	}
	var got []string
	note := func(out once.Outcome[string], err error) {
		got = append(got, fmt.Sprint(out.Value, out.Replayed, out.Attempt, err != nil))
	}
	for _, key := range []string{"pay", "pay{42}", "é ü\n\"'"} {
		got = nil
		in := o.WithInput([]byte("10"))
		note(once.Do(ctx, in, key, give("", once.Again(bad))))
		note(once.Do(ctx, in, key, give("<paid> \"é\x01\"", nil)))
		note(once.Do(ctx, in, key, give("twice", nil)))
		note(once.Do(ctx, o.WithInput([]byte("11")), key, give("other", nil)))
		if err := o.Forget(ctx, key); err != nil {
			t.Errorf("Forget: %v", err)
		}
		note(once.Do(ctx, o, key, give("", bad)))
		note(once.Do(ctx, o, key, give("twice", nil)))
		note(once.Resolve(ctx, o, key, "by hand"))
		note(once.Do(ctx, o, key, give("twice", nil)))
		want := []string{"false 1 true", "<paid> \"é\x01\"false 2 false", "<paid> \"é\x01\"true 2 false", "false 0 true", "false 1 true", "false 0 true", "by handfalse 1 false", "by handtrue 1 false"}
		if !slices.Equal(got, want) {
			t.Errorf("key %q:\n got %q\nwant %q", key, got, want)
		}
	}
	j, err := once.NewJob(c, "report", &once.JobConfig{Ahead: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	nothing := func(context.Context, once.Run) error { return nil }
	for i, tt := range []struct {
		at   time.Duration
		want error
	}{{0, nil}, {0, once.ErrTaken}, {time.Minute, nil}, {time.Second, once.ErrTaken}, {2 * time.Hour, once.ErrAhead}, {2 * time.Minute, nil}} {
		if err := once.Tick(ctx, j, now.Add(tt.at), nothing); !errors.Is(err, tt.want) {
			t.Errorf("tick %d: %v, want %v", i, err, tt.want)
		}
	}
}
