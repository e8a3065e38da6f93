package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/child"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/once"
)

// storedExit is the outcome that zamok once stores. It is an object, so that a number
// that a program of the user's has stored under the same key is not taken for an
// exit code.
type storedExit struct {
	Exit *int `json:"exit"`
}

// exitText is the error that is stored of a run that failed; it is parsed again
// when it is replayed.
const exitText = "exit code "

func (a *app) once(ctx context.Context, f *onceFlags) error {
	return a.connected(ctx, &f.claim, func(s *session) error {
		o, err := f.open(s.client)
		switch {
		case err != nil:
			return err
		case f.settles():
			return a.settle(s, f, o)
		}
		return a.runOnce(s, f, o)
	})
}

// deed is the one run of the command, if it came to that.
type deed struct {
	lease  *zamok.Lease
	result *child.Result // nil: the command was not tried
}

func (a *app) runOnce(s *session, f *onceFlags, o *once.Once) error {
	d := &deed{}
	s.told.begin()
	out, err := once.Do(s.signals.waiting, o, f.key, func(work context.Context, run once.Run) (json.RawMessage, error) {
		s.told.end(nil)
		d.lease = zamok.LeaseFrom(work)
		return a.runKey(s, f, d, run)
	})
	switch {
	case d.result != nil:
		return a.ran(f, d, err)
	case d.lease != nil:
		return f.almost(err)
	}
	s.told.end(err)
	if err != nil {
		return a.notRun(f, err)
	}
	a.replay(f, &out)
	return nil
}

// runKey is the function of a key. What it returns is what is stored.
func (a *app) runKey(s *session, f *onceFlags, d *deed, run once.Run) (json.RawMessage, error) {
	err := s.signals.handOver()
	if err == nil {
		// What was handed over has 2 s at first, and -k may need more to end the command.
		err = whole(s.signals.running, d.lease, time.Duration(f.ttl))
	}
	if err != nil {
		return nil, once.Again(err)
	}
	r := a.runUnder(s.signals.running, &f.runFlags, d.lease, s.told, "ZAMOK_ONCE_KEY="+run.Key, "ZAMOK_ONCE_ID="+run.ID)
	d.result = &r
	code := exitOf(&r)
	switch {
	case r.End == child.NotStarted:
		return nil, once.Again(r.Err)
	case r.End == child.Lost:
		// Nobody knows how far it came. By zamok's own judgement the lease is over; should
		// it still be there, its end must not be stored as the command's own.
		_ = d.lease.Release(context.Background())
	case code == 0:
		return json.Marshal(storedExit{&code})
	}
	return nil, errors.New(exitText + strconv.Itoa(code))
}

// exitOf is the exit code that stands for a run: the command's own, or for one
// that zamok stopped that of the reason.
func exitOf(r *child.Result) int {
	var stopped *interrupted
	switch {
	case r.End == child.MaxRun:
		return exit.MaxRun
	case r.End == child.Unguarded:
		return exit.Bug
	case r.End == child.Cancelled && errors.As(r.Err, &stopped):
		return stopped.code()
	}
	return r.Code
}

// ran says what came of the run here. err is that of once.Do.
func (a *app) ran(f *onceFlags, d *deed, err error) error {
	failed := f.finish(a, d.lease, *d.result)
	var unstored *once.NotStoredError
	switch {
	case !errors.As(err, &unstored) || d.result.End == child.NotStarted:
	case d.result.End == child.Lost && d.result.Ran == 0:
		a.talk.hint("%s", f.notStarted())
	case d.result.End == child.Lost:
		a.talk.hint("%s", f.whatNow("nobody knows how far it came"))
	default:
		code := exitOf(d.result)
		a.talk.fail("%q: the command ended with exit code %d, and it is not known that this is stored: %s", f.key, code, reason(strip(unstored.Err)))
		a.talk.hint("%s", f.whatNow("to store it: "+f.call("--resolve "+strconv.Itoa(code))))
	}
	return failed
}

// whatNow is what comes after a run whose end is not stored.
func (f *onceFlags) whatNow(first string) string {
	if f.policy == "retry" {
		return first + "; else the next call runs it again (--policy retry)"
	}
	return first + "; else later calls exit with " + strconv.Itoa(exit.Undecided) + " until " + f.call("--resolve CODE") + " or " + f.call("--forget")
}

// notStarted is for a run that may be remembered although it never was.
func (f *onceFlags) notStarted() string {
	return "the command was not started; if a later call says that a run was interrupted, it was this one: " + f.call("--forget")
}

// almost explains why the command was not started although its turn had come.
func (f *onceFlags) almost(err error) error {
	hint := f.notStarted()
	var lost *zamok.LostError
	if errors.As(err, &lost) {
		return &failure{code: exit.Lost, err: &worded{fmt.Sprintf("lost the lock %q: %v; the command was not started", f.name, reason(lost)), err}, hint: hint}
	}
	known := explain(f.notObtained(err))
	if known.hint == "" && errors.Is(err, once.ErrNotStored) {
		known.hint = hint
	}
	return known
}

// notRun explains why nothing ran.
func (a *app) notRun(f *onceFlags, err error) error {
	var (
		unended  *once.InterruptedError
		failed   *once.FailedError
		mismatch *once.MismatchError
	)
	switch {
	case errors.As(err, &unended):
		return f.undecided(unended)
	case errors.As(err, &failed):
		return a.replayFailure(f, failed)
	case errors.As(err, &mismatch):
		return &failure{
			code: exit.Mismatch, err: fmt.Errorf("%q was used before with another input, and is not run", f.key),
			hint: "a KEY must belong to one thing to do: put into it what tells them apart",
		}
	case errors.Is(err, zamok.ErrUnknown):
		return &failure{
			code: exit.Unavailable, err: strip(err),
			hint: f.notStarted(),
		}
	}
	known := explain(f.notObtained(err))
	if known.code == exit.Failed { // 1 is the code of many commands
		known = &failure{code: exit.Config, err: strip(err), hint: "if it is of no use any more: " + f.call("--forget")}
	}
	return known
}

func (f *onceFlags) undecided(e *once.InterruptedError) error {
	return &failure{
		code: exit.Undecided,
		err: fmt.Errorf("%q: a run by %s that began at %s was interrupted: it may or may not have been done, and --policy give-up does not run it again",
			f.key, e.By, stamp(e.Began)),
		hint: fmt.Sprintf("find out (its ZAMOK_ONCE_ID is %s); if it was done: %s; if not: %s", e.ID, f.call("--resolve 0"), f.call("--forget")),
	}
}

// replay exits as the run did that is remembered.
func (a *app) replay(f *onceFlags, out *once.Outcome[json.RawMessage]) {
	a.code = exitIn(out.Value)
	how := ""
	if a.code != 0 {
		how = " with exit code " + strconv.Itoa(a.code)
	}
	a.talk.say("%q: done before by %s at %s%s", f.key, out.By, stamp(out.Began), how)
}

// exitIn is the exit code in a stored outcome. What a program of the user's has
// stored there has none, and says that it was done.
func exitIn(value json.RawMessage) int {
	var e storedExit
	if json.Unmarshal(value, &e) != nil || e.Exit == nil {
		return 0
	}
	return *e.Exit
}

// replayFailure does not give its message to be silenced: that nothing ran must
// not look like a command that failed without a word.
func (a *app) replayFailure(f *onceFlags, e *once.FailedError) error {
	code, how := exit.Failed, e.Text
	if text, ours := strings.CutPrefix(e.Text, exitText); ours {
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 256 {
			code = n
		}
	}
	return &failure{
		code: code, err: fmt.Errorf("%q: failed before by %s at %s, and is not run again: %s", f.key, e.By, stamp(e.Began), how),
		hint: "to have it run again: " + f.call("--forget") + "; if it was done after all: " + f.call("--resolve 0"),
	}
}

// stamp is a time by the server's clock: UTC, since hosts differ.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// call is a call of zamok once to copy, for this key.
func (f *onceFlags) call(flag string) string {
	words := "zamok once "
	if f.server.prefix != "" {
		words += "--prefix " + quoted(f.server.prefix) + " "
	}
	return "`" + words + flag + " " + quoted(f.key) + "`"
}

// quoted is a word for a shell.
func quoted(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("%+,-./:=@_", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
