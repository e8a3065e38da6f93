package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
)

// CheckConfig says what counts as a problem. The zero value of every field is its
// default.
type CheckConfig struct {
	// Pattern: only locks with such titles are counted and judged, as in
	// View.Locks. All are read all the same, since a deadlock may lead through
	// others. Default: all.
	Pattern string

	// Held: a lock that is held longer, by one of its holders, is a problem.
	// Default: no limit.
	Held time.Duration

	// Waited: a lock for which somebody waits longer is a problem.
	// Default: no limit.
	Waited time.Duration
}

// The kinds of problems.
const (
	ProblemHeld       = "held"       // longer than CheckConfig.Held
	ProblemWaited     = "waited"     // somebody waits longer than CheckConfig.Waited
	ProblemNoTTL      = "no-ttl"     // it never ends by itself
	ProblemSilent     = "silent"     // the holder's process is gone or cut off: Lock.Silent
	ProblemLate       = "late"       // the holder does not renew it: Lock.Late
	ProblemPermits    = "permits"    // more are held than there are, or processes differ in how many there are
	ProblemDeadlock   = "deadlock"   // holders wait for each other
	ProblemUnreadable = "unreadable" // the server does not tell: Lock.Err
)

// problemKinds are all of them.
var problemKinds = []string{ProblemHeld, ProblemWaited, ProblemNoTTL, ProblemSilent, ProblemLate, ProblemPermits, ProblemDeadlock, ProblemUnreadable}

// Problem is one thing that an operator should look at.
type Problem struct {
	Kind string
	// Critical: it does not pass by itself, or not before others have waited for
	// it: no-ttl, a deadlock that is sure, and silent while others wait. Anything
	// else is a warning.
	Critical bool
	Lock     Lock      // of a deadlock its first member's
	Token    string    // of the holder that it is about, the worst of several; of a deadlock, of the first member's
	Deadlock *Deadlock // nil but for a deadlock
	Text     string    // in words, without the title of the lock
}

// Report is what Check found.
type Report struct {
	Time     time.Time // by the server's clock
	Problems []Problem // the critical ones first, then by name

	Held        int           // locks that are held, and semaphores of which a permit is
	Holders     int           // who holds them
	Waiting     int           // who waits, for all locks
	Processes   int           // that live
	Silent      int           // processes that should have spoken and have not
	Unnamed     int           // leases and waits that no process names, so that they were not looked at
	LongestHold time.Duration // by a client of zamok
	LongestWait time.Duration // of one that still listens

	Counts map[string]int // problems of each kind; every kind is there
}

// Critical says whether there is a critical problem.
func (r *Report) Critical() bool {
	return len(r.Problems) > 0 && r.Problems[0].Critical
}

// surely is how long all of a circle have waited before Check takes it for a
// deadlock that is not sure. Goroutines of one process that want what others of it
// have stand like that often, for moments.
const surely = 10 * time.Second

// Check looks at all locks that the processes name, as Look and View.Locks do, and
// says what is wrong. nil is the default.
//
// What it finds was true at one moment of each lock. A report without problems says
// nothing about locks that no process names: foreign holders for which nobody
// waits, and those of Report.Unnamed.
//
// The error is that of Look or of View.Locks, or a *zamok.ConfigError; what could
// not be read is never taken for good.
func (i *Inspector) Check(ctx context.Context, cfg *CheckConfig) (*Report, error) {
	if cfg == nil {
		cfg = &CheckConfig{}
	}
	for field, d := range map[string]time.Duration{"Held": cfg.Held, "Waited": cfg.Waited} {
		if d < 0 {
			return nil, &zamok.ConfigError{Field: "CheckConfig." + field, Err: fmt.Errorf("%v is negative", d)}
		}
	}
	v, err := i.Look(ctx)
	if err != nil {
		return nil, err
	}
	r := newReport(v)
	var contended []Lock
	for l, err := range v.Locks(ctx, "") {
		if err != nil {
			return nil, err
		}
		if cfg.matches(l.Title()) {
			r.count(&l)
			r.look(&l, cfg)
		}
		if l.Held && l.Waiting > 0 {
			contended = append(contended, l)
		}
	}
	r.deadlocks(contended, cfg)
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		if a.Critical != b.Critical {
			return map[bool]int{true: -1, false: 1}[a.Critical]
		}
		return cmp.Or(strings.Compare(a.Lock.Title(), b.Lock.Title()), strings.Compare(a.Lock.Key, b.Lock.Key))
	})
	return r, nil
}

func newReport(v *View) *Report {
	r := &Report{Time: v.Time, Unnamed: v.Unnamed, Counts: map[string]int{}}
	for _, kind := range problemKinds {
		r.Counts[kind] = 0
	}
	for _, p := range v.Processes {
		switch {
		case p.Silent:
			r.Silent++
		case !p.Left:
			r.Processes++
		}
	}
	return r
}

func (r *Report) add(kind string, critical bool, l *Lock, h *Holder, format string, args ...any) {
	p := Problem{Kind: kind, Critical: critical, Lock: *l, Text: fmt.Sprintf(format, args...)}
	if h != nil {
		p.Token = h.Token
	}
	r.Counts[kind]++
	r.Problems = append(r.Problems, p)
}

// count adds a lock to the totals.
func (r *Report) count(l *Lock) {
	r.Waiting += l.Waiting
	r.Holders += l.Holding
	if l.Held {
		r.Held++
	}
	for n := range l.Holders {
		if h := &l.Holders[n]; !h.Resting {
			r.LongestHold = max(r.LongestHold, h.Since)
		}
	}
	if w := l.longest(); w != nil {
		r.LongestWait = max(r.LongestWait, w.Waited)
	}
}

// longest is who waits longest of those who still listen; nil when nobody does.
func (l *Lock) longest() *Waiter {
	var longest *Waiter
	for n := range l.Waiters {
		if w := &l.Waiters[n]; w.Alive && (longest == nil || w.Waited > longest.Waited) {
			longest = w
		}
	}
	return longest
}

// look finds what is wrong with one lock.
func (r *Report) look(l *Lock, cfg *CheckConfig) {
	if l.Err != nil {
		r.add(ProblemUnreadable, false, l, nil, "it cannot be read: %v", l.Err)
		return
	}
	w := l.longest()
	r.holders(l, w, cfg)
	if cfg.Waited > 0 && w != nil && w.Waited > cfg.Waited {
		r.add(ProblemWaited, false, l, nil, "%s waits for %s, longer than %v; %s", w.who(), words(w.Waited), cfg.Waited, l.state())
	}
	if l.NoTTL {
		first := l.First()
		r.add(ProblemNoTTL, true, l, &first, "%s and it never ends by itself: the key has no TTL", l.state())
	}
	switch {
	case l.Kind != KindSemaphore:
	case l.Permits > 0 && l.Holding > l.Permits:
		r.add(ProblemPermits, false, l, nil, "%s are held; no new one is given until enough have come back", l.use())
	case !l.Fixed && l.fewest < l.Permits:
		r.add(ProblemPermits, false, l, nil, "its processes differ in how many permits there are: %d to %d", l.fewest, l.Permits)
	}
}

// holders finds what is wrong with those who have the lock: of each kind one problem,
// which tells of the worst and how many more there are.
func (r *Report) holders(l *Lock, w *Waiter, cfg *CheckConfig) {
	held := func(h *Holder) bool { return cfg.Held > 0 && h.Since > cfg.Held && !h.Resting }
	if h, more := l.worst(held, func(h *Holder) time.Duration { return h.Since }); h != nil {
		r.add(ProblemHeld, false, l, h, "held for %s by %s%s, longer than %v", words(h.Since), h.who(), more, cfg.Held)
	}
	ends := func(h *Holder) string {
		if l.NoTTL {
			return "it never ends by itself"
		}
		return "it ends in " + words(h.Left)
	}
	if h, more := l.worst(func(h *Holder) bool { return h.Silent }, func(h *Holder) time.Duration { return h.Left }); h != nil {
		others := ""
		if w != nil {
			others = ", and others wait"
		}
		r.add(ProblemSilent, w != nil, l, h, "%s%s is gone or cut off%s; %s", h.who(), more, others, ends(h))
	}
	late := func(h *Holder) time.Duration { return h.Late }
	if h, more := l.worst(func(h *Holder) bool { return h.Late > 0 && !h.Silent }, late); h != nil {
		r.add(ProblemLate, false, l, h, "%s%s should have renewed it %s ago; %s", h.who(), more, words(h.Late), ends(h))
	}
}

// worst is the holder of those that are bad of which much is most, and how many more
// there are, in words; nil when none is bad.
func (l *Lock) worst(bad func(*Holder) bool, much func(*Holder) time.Duration) (worst *Holder, more string) {
	count := 0
	for n := range l.Holders {
		h := &l.Holders[n]
		if !bad(h) {
			continue
		}
		count++
		if worst == nil || much(h) > much(worst) {
			worst = h
		}
	}
	if count > 1 {
		more = fmt.Sprintf(" (and %d more)", count-1)
	}
	return worst, more
}

// deadlocks finds the circles among the locks. One that is not sure must have
// lasted: see surely.
func (r *Report) deadlocks(locks []Lock, cfg *CheckConfig) {
	for _, d := range Deadlocks(locks) {
		brief := slices.ContainsFunc(d.Members, func(m DeadlockMember) bool { return m.Waits.Waited < surely })
		matches := slices.ContainsFunc(d.Members, func(m DeadlockMember) bool { return cfg.matches(m.Title()) })
		if !d.Sure && brief || !matches {
			continue
		}
		first := slices.IndexFunc(locks, func(l Lock) bool { return l.Key == d.Members[0].Key })
		r.add(ProblemDeadlock, d.Sure, &locks[first], &Holder{Holder: d.Members[0].Holder}, "%s", d.String())
		r.Problems[len(r.Problems)-1].Deadlock = &d
	}
}

func (c *CheckConfig) matches(title string) bool { return c.Pattern == "" || match(c.Pattern, title) }
