package validate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok/lab/fault/history"
)

// limits are in ns, as the stamps of the histories here.
var limits = Limits{Stall: 100, Recovery: 10, Grace: 5, Search: 10 * time.Second}

type event = history.Event

// take is a grant of a mutex to a lease of a process of its own, between two stamps.
func take(lease string, call, ret, fence, until int64) event {
	return event{Op: history.Acquire, Kind: history.Mutex, Name: "n", Proc: "p" + lease, Lease: lease, Call: call, Return: ret, Outcome: history.OK, Fence: fence, Until: until}
}

// of is what a holder of a mutex did.
func of(lease string, op history.Op, call, ret int64, o history.Outcome) event {
	return event{Op: op, Name: "n", Proc: "p" + lease, Lease: lease, Call: call, Return: ret, Outcome: o}
}

func freed(lease string, call, ret int64) event {
	return of(lease, history.Release, call, ret, history.OK)
}

func as(kind history.Kind, e event) event   { e.Kind = kind; return e }
func doing(op history.Op, e event) event    { e.Op = op; return e }
func until(at int64, e event) event         { e.Until = at; return e }
func queued(at int64, e event) event        { e.Queued = at; return e }
func permits(n int, e event) event          { e.Kind, e.Limit = history.Permit, n; return e }
func from(lease string, e event) event      { e.From = lease; return e }
func ends(o history.Outcome, e event) event { e.Outcome = o; return e }
func inLease(lease string, e event) event   { e.Lease = lease; return e }
func killed(proc string, at int64) history.Fault {
	return history.Fault{Kind: "kill", Kills: proc, From: at, Till: at}
}

// wrote is a write to a register under the fence.
func wrote(kind history.Kind, call, ret, fence, value int64, o history.Outcome) event {
	return event{Op: history.Write, Kind: kind, Name: "r", Call: call, Return: ret, Fence: fence, Value: value, Outcome: o}
}

func saw(kind history.Kind, call, ret, fence, value int64) event {
	return event{Op: history.Read, Kind: kind, Name: "r", Call: call, Return: ret, Fence: fence, Value: value, Outcome: history.OK}
}

func ran(proc string, call, ret, until, value int64) event {
	return event{Op: history.Run, Kind: history.Retry, Name: "k", Proc: proc, Call: call, Return: ret, Until: until, Value: value, Outcome: history.OK}
}

func told(call, ret, value int64) event {
	return event{Op: history.Once, Kind: history.Retry, Name: "k", Call: call, Return: ret, Value: value, Outcome: history.OK}
}

// scene is a history, and what is wrong with it.
type scene struct {
	what   string
	events []event
	faults []history.Fault
	want   []Property
}

func (s scene) check(t *testing.T, l Limits) *Report {
	t.Helper()
	h := &history.History{Events: slices.Clone(s.events), Faults: slices.Clone(s.faults)}
	for i := range h.Events {
		h.Events[i].ID = int64(i) + 1
	}
	h.Sort()
	r := Check(h, l)
	var got []Property
	for _, v := range r.Violations {
		if !slices.Contains(got, v.Property) {
			got = append(got, v.Property)
		}
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(s.want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: violated %q, want %q: %+v", s.what, got, want, r.Violations)
	}
	return r
}

func scenes(t *testing.T, list []scene) {
	t.Helper()
	for _, s := range list {
		s.check(t, limits)
	}
}

func TestCounts(t *testing.T) {
	handed := queued(12, take("b", 11, 32, 2, 90))
	handed.Handed = true
	r := scene{what: "counts", events: []event{
		take("a", 10, 20, 1, 80), handed, ends(history.Unknown, take("c", 12, 40, 0, 0)), freed("a", 30, 33),
		{Op: history.Acquire, Kind: history.Mutex, Name: "n", Proc: "pd", Call: 40}, freed("b", 50, 60),
		{Op: history.Key, Name: "reg:n", TTL: -1},
	}}.check(t, limits)
	if r.Operations != 4 || r.Holds != 2 || r.HandedOver != 1 || r.Unknown != 2 || r.Undecided != 0 {
		t.Errorf("%+v, want 4 operations, 2 holds, 1 hand-over and 2 of unknown outcome", r)
	}
}

// What a fault excuses is told from what was judged.
func TestJudged(t *testing.T) {
	s := scene{what: "what is judged", events: []event{
		queued(12, take("a", 11, 20, 1, 90)), freed("a", 21, 22), queued(24, take("b", 23, 30, 2, 90)), freed("b", 31, 32),
		take("c", 50, 60, 3, 90), freed("c", 61, 62),
	}, faults: []history.Fault{
		{Harms: history.Deafens, From: 5, Till: 8}, // and 10 for the recovery
		{Harms: history.Stalls, From: 28, Till: 29}, {Harms: history.Stalls, From: 30, Till: 45},
	}}
	r := s.check(t, limits)
	if want := (Judged{1, 3}); r.Waits != want {
		t.Errorf("waits %+v, want %+v", r.Waits, want)
	}
	if want := (Judged{1, 2}); r.Places != want {
		t.Errorf("places %+v, want %+v", r.Places, want)
	}
}

// A search without time says so, and is no violation.
func TestUndecided(t *testing.T) {
	l := limits
	l.Search = 1
	var events []event
	for i := range int64(200) {
		events = append(events, wrote(history.Guarded, i, 1000, i, i+1, history.OK))
	}
	events = append(events, saw(history.Guarded, 1001, 1002, 1, 2))
	if r := (scene{what: "a long search", events: events}).check(t, l); r.Undecided != 1 {
		t.Errorf("%d undecided, want 1", r.Undecided)
	}
}

func TestPictureOfWhatHasNoOrder(t *testing.T) {
	l := limits
	l.Pictures = t.TempDir()
	r := scene{
		what:   "a stale write",
		events: []event{wrote(history.Guarded, 1, 2, 7, 1, history.OK), wrote(history.Guarded, 3, 4, 6, 2, history.OK)},
		want:   []Property{Guarded},
	}.check(t, l)
	files, err := filepath.Glob(filepath.Join(l.Pictures, "*.html"))
	if err != nil || len(files) != 1 || !strings.HasSuffix(r.Violations[0].Text, files[0]) {
		t.Fatalf("pictures %q, %v; the violation says %q", files, err, r.Violations[0].Text)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "write 2 with fence 6") {
		t.Errorf("the picture does not show the write: %v", err)
	}
}

// What has no order is shown where it has none, for a run whose history nobody has.
func TestWhereTheSearchStuck(t *testing.T) {
	told := ends(history.Lost, freed("a", 40, 45))
	r := scene{what: "lost for nothing", want: []Property{Object}, events: []event{
		take("z", 0, 1, 1, 9), freed("z", 1, 2), take("a", 3, 4, 2, 90), told, take("b", 47, 51, 3, 99), freed("b", 60, 61),
	}}.check(t, limits)
	if len(r.Violations) != 1 {
		t.Fatalf("%d violations, want 1", len(r.Violations))
	}
	shown := r.Violations[0].Events
	if !slices.ContainsFunc(shown, func(e history.Event) bool { return e.Lease == told.Lease && e.Outcome == history.Lost }) {
		t.Errorf("the release that was said to be too late is not shown: %+v", shown)
	}
}
