package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// outage tells once that the server does not answer, and once that it does again.
// It is for commands that go on looking.
type outage struct {
	talk *talk
	on   bool
}

// judge takes what came of asking. An error that it returns will not pass by
// itself: the server refuses.
func (o *outage) judge(err error) error {
	switch {
	case err == nil && o.on:
		o.on = false
		o.talk.say("the server answers again")
	case err == nil:
	case explain(err).code == exit.Denied:
		return err
	case !o.on:
		o.on = true
		o.talk.say("warning: no answer from the server: %v; trying on", plain(err))
	}
	return nil
}

// ended is why a command that looks on and on has ended. A signal is how it is
// meant to end, and there is nothing to say about it.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	var stopped *interrupted
	if errors.As(cause, &stopped) {
		return &failure{code: stopped.code(), err: stopped, silent: true}
	}
	return cause
}

// plain takes off an error what the packages put before it: the program's own name
// stands there.
func plain(err error) string { return strings.ReplaceAll(strip(err).Error(), "inspect: ", "") }

// unprefixed is the same error in plain words.
func unprefixed(err error) error {
	var known *failure
	var bad *zamok.ConfigError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.As(err, &bad):
		return usage("names have 1 to 512 bytes and no NUL; braces must make one hash tag, such as {a}", "bad %s: %w", bad.Field, bad.Err)
	}
	return &worded{plain(err), err}
}
