package itest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/internal/keys"
)

// taker is what may be taken, whatever it is of.
type taker interface {
	Lock(ctx context.Context) (*zamok.Lease, error)
	TryLock(ctx context.Context) (*zamok.Lease, error)
	Do(ctx context.Context, f func(ctx context.Context) error) error
	TryDo(ctx context.Context, f func(ctx context.Context) error) error
	ExtendToken(ctx context.Context, token string, d time.Duration) error
	ReleaseToken(ctx context.Context, token string) error
}

// reading is an RWMutex as its readers take it.
type reading struct{ *zamok.RWMutex }

func (r reading) Lock(ctx context.Context) (*zamok.Lease, error)    { return r.RLock(ctx) }
func (r reading) TryLock(ctx context.Context) (*zamok.Lease, error) { return r.TryRLock(ctx) }
func (r reading) Do(ctx context.Context, f func(context.Context) error) error {
	return r.RDo(ctx, f)
}
func (r reading) TryDo(ctx context.Context, f func(context.Context) error) error {
	return r.TryRDo(ctx, f)
}

// permits is a semaphore.
type permits struct{ *zamok.Semaphore }

func (p permits) Lock(ctx context.Context) (*zamok.Lease, error)    { return p.Acquire(ctx) }
func (p permits) TryLock(ctx context.Context) (*zamok.Lease, error) { return p.TryAcquire(ctx) }

// maker makes a handle on a name; cfg may be nil.
type maker func(c *zamok.Client, name string, cfg *zamok.MutexConfig) taker

func mutexOf(c *zamok.Client, name string, cfg *zamok.MutexConfig) taker { return c.Mutex(name, cfg) }

func writerOf(c *zamok.Client, name string, cfg *zamok.MutexConfig) taker {
	return c.RWMutex(name, cfg)
}

func readerOf(c *zamok.Client, name string, cfg *zamok.MutexConfig) taker {
	return reading{c.RWMutex(name, cfg)}
}

func permitOf(n int) maker {
	return func(c *zamok.Client, name string, cfg *zamok.MutexConfig) taker {
		var own *zamok.SemaphoreConfig
		if cfg != nil {
			own = &zamok.SemaphoreConfig{TTL: cfg.TTL, Wait: cfg.Wait, MaxHold: cfg.MaxHold, Grace: cfg.Grace, Reason: cfg.Reason}
		}
		return permits{c.Semaphore(name, n, own)}
	}
}

// leaseKind is one kind of lease, and where the server has it.
type leaseKind struct {
	name   string
	of     maker
	rivals []maker // each excludes it and is excluded by it
	key    string  // what its key begins with, before the name
	// members is what the key of the list of those who have it begins and ends
	// with; empty when there is one alone, whom the key names.
	members [2]string
}

// A semaphore is of one permit, so that two of them are rivals. One of two excludes
// only a third, and is what cases 31, 38 and 39 are tried with.
var (
	mutexKind  = leaseKind{name: "mutex", of: mutexOf, rivals: []maker{mutexOf}, key: "lock:"}
	writerKind = leaseKind{name: "writer", of: writerOf, rivals: []maker{readerOf, mutexOf}, key: "lock:"}
	readerKind = leaseKind{name: "reader", of: readerOf, rivals: []maker{writerOf}, key: "lock:", members: [2]string{"zamok:readers:{lock:", "}"}}
	permitKind = leaseKind{name: "permit", of: permitOf(1), rivals: []maker{permitOf(1)}, key: "semaphore:", members: [2]string{"semaphore:", ""}}
	pairKind   = leaseKind{name: "pair", of: permitOf(2), key: "semaphore:", members: permitKind.members}

	kinds = []leaseKind{mutexKind, writerKind, readerKind, permitKind}
)

// eachKind runs a case for a mutex with every library, and for each other kind with
// one of them: in turn, so that each kind meets both.
func eachKind(t *testing.T, run func(t *testing.T, lib library, k leaseKind)) {
	t.Parallel()
	name, _, _ := strings.Cut(t.Name(), "/")
	for i, k := range kinds {
		for j, lib := range libraries {
			if i > 0 && (i+j+len(name))%len(libraries) != 0 {
				continue
			}
			t.Run(k.name+"/"+lib.name, func(t *testing.T) {
				t.Parallel()
				run(t, lib, k)
			})
		}
	}
}

// rival makes a handle on what the kind excludes, another for another turn.
func (k leaseKind) rival(c *zamok.Client, name string, turn int) taker {
	return k.rivals[turn%len(k.rivals)](c, name, nil)
}

func (k leaseKind) shared() bool { return k.members[0] != "" }

func (k leaseKind) keyOf(name string) string { return k.key + name }

func (k leaseKind) queue(name string) string { return "zamok:queue:{" + k.key + name + "}" }

func (k leaseKind) membersOf(name string) string { return k.members[0] + name + k.members[1] }

// taken says whether the server has anything of that name: a holder, or a member.
func (k leaseKind) taken(t testing.TB, s server, name string) bool {
	t.Helper()
	return s.has(t, k.keyOf(name)) || k.shared() && s.has(t, k.membersOf(name))
}

// waiting says how many stand in the queue.
func (k leaseKind) waiting(t testing.TB, s server, name string) int {
	t.Helper()
	n, _ := s.MustDo("ZCARD", k.queue(name)).(int64)
	return int(n)
}

// found is who has the name, as the server says: the value of the key, and the
// tokens of the members.
func (k leaseKind) found(t testing.TB, s server, name string) string {
	t.Helper()
	out := ""
	if k.key == "lock:" {
		out = s.get(t, k.keyOf(name))
	}
	if k.shared() {
		list, _ := s.MustDo("ZRANGE", k.membersOf(name), "0", "-1").([]any)
		out = fmt.Sprintf("%s %s", out, list)
	}
	return out
}

// mustBe fails the test unless the server has exactly this lease of its name. The
// fence of a permit stands nowhere but in the counter of the slot.
func (k leaseKind) mustBe(t testing.TB, s server, l *zamok.Lease) {
	t.Helper()
	want := value(l)
	switch k.key + k.members[0] {
	case "lock:":
	case "lock:zamok:readers:{lock:":
		want = fmt.Sprintf("z1-read:%d [%s]", l.Fence(), l.Token())
	default:
		set, err := keys.ForSemaphore("", l.Name())
		if err != nil {
			t.Fatal(err)
		}
		if last := s.get(t, set.Fence()); last != fmt.Sprint(l.Fence()) {
			t.Errorf("the last fence is %s, the lease's %d", last, l.Fence())
		}
		want = fmt.Sprintf(" [%s]", l.Token())
	}
	if got := k.found(t, s, l.Name()); got != want {
		t.Errorf("the server has %q, the lease is %q", got, want)
	}
}

// left is how long the server keeps the lease if nobody renews it.
func (k leaseKind) left(t testing.TB, s server, l *zamok.Lease) time.Duration {
	t.Helper()
	if !k.shared() {
		return s.pttl(t, k.keyOf(l.Name()))
	}
	return s.memberEnds(t, k.membersOf(l.Name()), l.Token()).Sub(s.now(t))
}

// memberEnds is when the lease of a member ends, by the server's clock; the zero
// time when there is none.
func (s server) memberEnds(t testing.TB, list, token string) time.Time {
	t.Helper()
	text, _ := s.MustDo("ZSCORE", list, token).(string)
	var ms int64
	if _, err := fmt.Sscan(text, &ms); err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// now is the server's clock.
func (s server) now(t testing.TB) time.Time {
	t.Helper()
	fields, _ := s.MustDo("TIME").([]any)
	var sec, us int64
	if _, err := fmt.Sscan(fmt.Sprintln(fields...), &sec, &us); err != nil {
		t.Fatal(err)
	}
	return time.UnixMicro(sec*1e6 + us)
}

// calls matches the calls of scripts on that name.
func (k leaseKind) calls(name string) drivertest.Match {
	return func(args []string) bool {
		return isCall(args) && len(args) > 3 && args[3] == k.keyOf(name)
	}
}

// renewals matches the renewals of names, which it is told.
func (k leaseKind) renewals(of func(name string) bool) drivertest.Match {
	keys := "1"
	if k.shared() {
		keys = "3"
	}
	return func(args []string) bool {
		if !isCall(args) || len(args) < 4 || args[2] != keys {
			return false
		}
		name, ok := strings.CutPrefix(args[3], k.key)
		return ok && of(name)
	}
}

// mustBeGone fails the test when any of the kind's keys are left.
func (k leaseKind) mustBeGone(t testing.TB, s server) {
	t.Helper()
	left := slices.DeleteFunc(s.keys(t), func(key string) bool {
		return !strings.HasPrefix(key, k.key) && !(k.shared() && strings.HasPrefix(key, k.members[0]))
	})
	for _, key := range left {
		t.Errorf("%s is left with a TTL of %v", key, s.pttl(t, key))
	}
}
