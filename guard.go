package zamok

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// Script is Lua of the caller's own, for Lease.Run: conditional logic and writes
// that happen in one atomic step, and only under the lock. Make it once, as a
// package variable, and use it often.
type Script struct {
	name   string
	run    *driver.Script
	permit *driver.Script // the same under a permit of a semaphore
	err    error
}

// NewScript makes a script. In the source, KEYS and ARGV are what Run is given,
// and FENCE is the lease's fence as a decimal string; what it returns, Run
// returns. The name is for errors. A mistake is a *ConfigError of every Run.
func NewScript(name, source string) *Script {
	s := &Script{name: name}
	switch {
	case name == "":
		s.err = badField("script", "it has no name")
	case strings.TrimSpace(source) == "":
		s.err = badField("script", "%q has no source", name)
	case strings.HasPrefix(strings.TrimSpace(source), "#!"):
		s.err = badField("script", "%q begins with #!: it runs within a script of zamok, so it can have no such line", name)
	default:
		s.run, s.permit = lua.Guard(name, source), lua.SemGuard(name, source)
	}
	return s
}

// Name returns the name given to NewScript.
func (s *Script) Name() string { return s.name }

// Run runs the script if the lease still holds, in one atomic step on the
// server: no write of a holder that lost its lease without knowing is ever
// applied. Keys must be on the server, and in a cluster in the slot, of the lock.
// Each arg is a string, []byte, int or int64.
//
// The reply is nil, an int64, a string, or a []any of these. Errors: *ConfigError,
// *LostError or ErrReleased, and ErrUnavailable when the server refused for a
// reason that passes: nothing ran; *ServerError when the script itself failed, and
// what it wrote before stays; ErrUnknown when the reply was lost: it ran once or
// not at all, and will not run later than the lease lasts. ErrUnknown comes with one of
// the others when the server refused for a reason that passes after 8 ms or more: the
// client library may have sent the script before. A script is never run twice by one
// call of Run.
func (l *Lease) Run(ctx context.Context, script *Script, keys []string, args ...any) (any, error) {
	if script == nil {
		return nil, badField("script", "it is nil")
	}
	if script.err != nil {
		return nil, script.err
	}
	if err := l.client.noQuorum("script", "no member knows whether a majority has the lease"); err != nil {
		return nil, err
	}
	texts, err := scriptArgs(args)
	if err != nil {
		return nil, err
	}
	if err := l.use(); err != nil {
		return nil, err
	}
	sure := false
	defer func() { l.used(sure) }()
	call := driver.Call{
		Script: script.run,
		Keys:   []string{l.spec.keys.Lock, l.spec.keys.Call(rand.Text())},
		Args:   append([]string{l.token, strconv.FormatInt(l.fence, 10)}, texts...),
		Limit:  min(max(l.ends().sub(l.client.clock.now()), 1), l.client.cfg.GiveUp),
	}
	if l.spec.kind == permit {
		call.Script = script.permit
	} else {
		call.Keys = append(call.Keys, l.spec.keys.Readers())
	}
	call.Keys = append(call.Keys, keys...)
	began := l.client.clock.now()
	reply, err := l.client.d.Eval(ctx, call)
	sure = err == nil
	if err != nil {
		return nil, l.notRun(script, err, l.client.clock.now().sub(began))
	}
	ans, err := parseAnswer(reply)
	switch {
	case err != nil:
		return nil, fmt.Errorf("zamok: script %q under lock %q: %w: %w", script.name, l.Name(), ErrUnknown, err)
	case ans.status == "ran":
		return ans.extra, nil
	case ans.status == "repeated":
		return nil, fmt.Errorf("zamok: script %q under lock %q: %w: it ran, once, but its reply was lost", script.name, l.Name(), ErrUnknown)
	}
	l.client.gone(ctx, []*Lease{l}, []answer{ans})
	return nil, l.Err()
}

// notRun says what an error of a guarded call that took so long means. What the server
// refuses for a while it may refuse to a library that sends again what has run.
func (l *Lease) notRun(script *Script, err error, took time.Duration) error {
	var se *driver.ServerError
	if !errors.As(err, &se) {
		return l.unknown(script, err)
	}
	again := took >= repeatPause && passingHint(se) != ""
	if err = l.refused(script, se, err); again {
		return l.unknown(script, err)
	}
	return err
}

func (l *Lease) unknown(script *Script, err error) error {
	return fmt.Errorf("zamok: script %q under lock %q: %w: it may have run, once: %w", script.name, l.Name(), ErrUnknown, err)
}

// refused says what the server's error means.
func (l *Lease) refused(script *Script, se *driver.ServerError, err error) error {
	if r := refusal(l.Name(), err); r != nil {
		switch {
		case r.Denied():
		case r.Code == "WRONGTYPE":
			r.Hint = fmt.Sprintf("the script %q failed: a key that it uses, or the lock's, is of another type", script.name)
		default:
			r.Hint = fmt.Sprintf("the script %q failed: %s", script.name, r.Hint)
		}
		return r
	}
	if isTransient(se) { // the server refused the whole call
		return fmt.Errorf("zamok: script %q under lock %q was refused: %w", script.name, l.Name(), unavailable(err))
	}
	return &ServerError{Name: l.Name(), Code: se.Code(), Hint: "the script " + strconv.Quote(script.name) + " failed on the server", Err: err}
}

func scriptArgs(args []any) ([]string, error) {
	texts := make([]string, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			texts[i] = v
		case []byte:
			texts[i] = string(v)
		case int:
			texts[i] = strconv.Itoa(v)
		case int64:
			texts[i] = strconv.FormatInt(v, 10)
		default:
			return nil, badField("argument", "number %d is a %T; a string, []byte, int or int64 is needed", i+1, arg)
		}
	}
	return texts, nil
}

// isTransient says whether the call was refused before the script began, for a
// reason that passes.
func isTransient(se *driver.ServerError) bool {
	for _, p := range passing {
		if strings.HasPrefix(se.Text, p.text) && !strings.Contains(se.Text, "script") {
			return true
		}
	}
	return false
}
