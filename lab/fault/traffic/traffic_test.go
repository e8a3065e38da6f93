package traffic

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/fault/history"
	"github.com/zamok-go/zamok/lab/fault/validate"
)

// plan is that of a worker on one server, in all that there is.
func plan(dir string, to Target) Plan {
	mix := Everything()
	mix[Once] = 4 // of which few are interrupted while others wait
	return Plan{
		Dir: dir, Seed: 1, Target: to, Clients: 2, Routines: 3,
		TTL: time.Second, Names: 2, Epoch: time.Second, Hold: 2 * time.Millisecond, Pause: 2 * time.Millisecond, Extend: 50, Bounded: 100,
		Guarded: true, Outside: true, Mix: mix,
	}
}

// process is a worker.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
}

// start starts a worker and returns when it is ready.
func start(t *testing.T, p Plan) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), workerEnv+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if err := json.NewEncoder(in).Encode(p); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	return &process{t, cmd, in}
}

// wait waits for the end of the process. crashed: it may have killed itself.
func (p *process) wait(crashed bool) {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil && !(crashed && strings.Contains(err.Error(), "killed")) {
		p.t.Errorf("a worker ended by %v", err)
	}
}

// counted waits until the histories have so many events, and returns them.
func counted(t *testing.T, dir string, enough func(h *history.History) bool) *history.History {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		h, err := history.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if enough(h) {
			return h
		}
		if time.Now().After(limit) {
			t.Fatalf("only %d events, or not all kinds of them, after minutes", len(h.Events))
		}
	}
}

var limits = validate.Limits{Stall: 30 * time.Second, Recovery: time.Second, Grace: time.Second / 8, Search: time.Minute} // the engine's grace is a tenth

// clean fails the test for each violation, but of what is not promised.
func clean(t *testing.T, h *history.History, unpromised ...validate.Property) *validate.Report {
	t.Helper()
	r := validate.Check(h, limits)
	for _, v := range r.Violations {
		if !slices.Contains(unpromised, v.Property) {
			t.Errorf("%s: %s: %s: %+v", v.Property, v.Name, v.Text, v.Events)
		}
	}
	t.Logf("%d operations, %d holds, %d handed over, %d unknown, %d undecided, longest stall %v", r.Operations, r.Holds, r.HandedOver, r.Unknown, r.Undecided, r.LongestStall)
	return r
}

// did counts the events of an operation on a kind with an outcome.
func did(h *history.History, op history.Op, kind history.Kind, o history.Outcome) (n int) {
	for _, e := range h.Events {
		if e.Op == op && e.Kind == kind && e.Outcome == o {
			n++
		}
	}
	return n
}

// kindOf is an operation on a kind with an outcome.
type kindOf struct {
	op   history.Op
	kind history.Kind
	o    history.Outcome
}

// onLocks are what every deployment has.
var onLocks = []kindOf{
	{history.Acquire, history.Mutex, history.OK},
	{history.Acquire, history.Mutex, history.Cancelled},
	{history.Try, history.Mutex, history.OK},
	{history.Try, history.Mutex, history.Held},
	{history.Renew, "", history.OK},
	{history.Look, "", history.OK},
	{history.Ended, "", history.OK},
	{history.Ended, "", history.Cancelled},
	{history.Release, "", history.OK},
	{history.Write, history.Outside, history.OK},
	{history.Read, history.Outside, history.OK},
}

// onServers are what only one server and a cluster have.
var onServers = []kindOf{
	{history.Acquire, history.Reader, history.OK},
	{history.Acquire, history.Writer, history.OK},
	{history.Acquire, history.Permit, history.OK},
	{history.Resume, history.Mutex, history.OK},
	{history.Downgrade, "", history.OK},
	{history.Detach, "", history.OK},
	{history.Ended, "", history.Lost}, // it had MaxHold
	{history.Write, history.Guarded, history.OK},
	{history.Write, history.Shared, history.OK},
	{history.Read, history.Shared, history.OK},
	{history.Read, history.Guarded, history.OK},
	{history.Once, history.Retry, history.OK},
	{history.Once, history.GiveUp, history.OK},
	{history.Once, history.GiveUp, history.Refused},
	{history.Run, history.Retry, history.OK},
	{history.Run, history.GiveUp, history.OK},
}

func TestEverythingIsDone(t *testing.T) {
	for _, deployment := range []struct {
		name       string
		start      func(t *testing.T, p *Plan)
		want       []kindOf
		unpromised []validate.Property
	}{
		{"server", func(t *testing.T, p *Plan) { p.Target.Addr = drivertest.StartServer(t).Addr() }, slices.Concat(onLocks, onServers), nil},
		{"cluster", func(t *testing.T, p *Plan) { p.Target.Nodes = drivertest.StartCluster(t, 3, 0).Addrs() }, slices.Concat(onLocks, onServers), nil},
		{"quorum", func(t *testing.T, p *Plan) {
			for range 3 {
				p.Target.Members = append(p.Target.Members, drivertest.StartServer(t).Addr())
			}
			p.Mix, p.Bounded, p.Guarded, p.Quarantine = OfQuorum(), 0, false, p.TTL
		}, onLocks, []validate.Property{validate.Order, validate.Refusal}}, // a new member is in quarantine
	} {
		t.Run(deployment.name, func(t *testing.T) {
			t.Parallel()
			p := plan(t.TempDir(), Target{})
			deployment.start(t, &p)
			everything(t, p, deployment.want, deployment.unpromised)
		})
	}
}

// everything plays two workers until all that is wanted was done.
func everything(t *testing.T, p Plan, want []kindOf, unpromised []validate.Property) {
	t.Helper()
	var workers []*process
	for i := range 2 {
		p.Proc, p.Seed = fmt.Sprint("w", i), uint64(i)
		workers = append(workers, start(t, p))
	}
	counted(t, p.Dir, func(h *history.History) bool {
		return len(h.Events) > 2000 && !slices.ContainsFunc(want, func(k kindOf) bool { return did(h, k.op, k.kind, k.o) == 0 })
	})
	for _, w := range workers {
		if err := w.in.Close(); err != nil {
			t.Error(err)
		}
		w.wait(false)
	}
	h := counted(t, p.Dir, func(*history.History) bool { return true })
	if r := clean(t, h, unpromised...); r.Undecided > 0 {
		t.Errorf("%d undecided, want none", r.Undecided)
	}
	for _, e := range h.Events {
		if e.Outcome == history.Pending {
			t.Errorf("still under way at the end: %+v", e)
		}
	}
}

// Workers that die with their leases, and others that come after them and go on with
// some of these; when all are over, no lock is left.
func TestWorkersDie(t *testing.T) {
	t.Parallel()
	server := drivertest.StartServer(t)
	dir := t.TempDir()
	next := 0
	one := func(crash int) *process {
		p := plan(dir, Target{Addr: server.Addr()})
		p.Proc, p.Seed, p.Crash, p.Long = fmt.Sprint("w", next), uint64(next), crash, 20
		p.Mix[HandOn], p.Names = 4, 1
		next++
		return start(t, p)
	}
	steady := one(0)
	dead := func(h *history.History) int { return len(h.Faults) }
	resumed := func(h *history.History) int { return did(h, history.Resume, history.Mutex, history.OK) }
	for limit := time.Now().Add(time.Minute); ; {
		one(10).wait(true)
		h := counted(t, dir, func(*history.History) bool { return true })
		if dead(h) >= 3 && resumed(h) > 0 && validate.Check(h, limits).LongestOrphan > 0 {
			break // and somebody waited for one who had died
		}
		if time.Now().After(limit) {
			t.Fatalf("%d died, %d leases were resumed after a minute", dead(h), resumed(h))
		}
	}
	if err := steady.in.Close(); err != nil {
		t.Error(err)
	}
	steady.wait(false)
	left := residueOf(t, server, dir)
	h := counted(t, dir, func(*history.History) bool { return true })
	clean(t, h)
	if !slices.ContainsFunc(left, func(e history.Event) bool { return strings.HasPrefix(e.Name, "zamok:fence:") }) {
		t.Errorf("of %d keys none is a fence: %+v", len(left), left)
	}
}

// residueOf waits until no lease can be left on the server, and returns what is.
func residueOf(t *testing.T, server *drivertest.Server, dir string) []history.Event {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		locks, ok := server.MustDo("KEYS", "lock:*").([]any)
		semaphores, ok2 := server.MustDo("KEYS", "semaphore:*").([]any)
		keys := append(locks, semaphores...)
		if ok && ok2 && len(keys) == 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("still there: %v", keys)
		}
	}
	log, err := history.NewLog(dir, "residue")
	if err != nil {
		t.Fatal(err)
	}
	if err := Residue(t.Context(), Target{Addr: server.Addr()}, log); err != nil {
		t.Error(err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	h, err := history.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(h.Events, func(e history.Event) bool { return e.Op != history.Key })
}
