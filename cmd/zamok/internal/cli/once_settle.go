package cli

import (
	"encoding/json"
	"fmt"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/once"
)

// settle is --forget and --resolve: what somebody found out of a key.
func (a *app) settle(s *session, f *onceFlags, o *once.Once) error {
	s.told.begin()
	if f.forget {
		err := o.Forget(s.signals.waiting, f.key)
		s.told.end(err)
		if err != nil {
			return a.notRun(f, err)
		}
		a.talk.say("%q is forgotten: the next call runs it", f.key)
		return nil
	}
	value, err := json.Marshal(storedExit{&f.code})
	if err != nil {
		return err
	}
	out, err := once.Resolve(s.signals.waiting, o, f.key, json.RawMessage(value))
	s.told.end(err)
	if err != nil {
		return a.notRun(f, err)
	}
	return a.resolved(f, &out)
}

// resolved says which outcome holds. That another one does is an error: whoever
// resolves a key must not believe in what is not so.
func (a *app) resolved(f *onceFlags, out *once.Outcome[json.RawMessage]) error {
	code := exitIn(out.Value)
	switch {
	case !out.Replayed:
		a.talk.say("%q is done: later calls exit with %d", f.key, f.code)
	case code == f.code:
		a.talk.say("%q: done before by %s at %s", f.key, out.By, stamp(out.Began))
	default:
		return &failure{
			code: exit.Failed, err: fmt.Errorf("%q: done before by %s at %s with exit code %d, and that stays", f.key, out.By, stamp(out.Began), code),
			hint: "to have it otherwise, first: " + f.call("--forget"),
		}
	}
	return nil
}
