// Package driver is the seam between zamok and a Redis client library.
//
// A driver sends Lua scripts and a few plain commands, and keeps one
// subscription alive. It knows nothing of locks: every decision is taken by a
// script on the server, and every time limit by the engine above. It imports
// nothing of zamok but this package.
//
// What a driver must hold, and package drivertest tries on every one of them:
//
//   - No call outlives its time limit or its ctx by more than 100 ms, whatever
//     the library does meanwhile. An abandoned call may go on behind, bounded
//     by the library's own limits.
//   - An error that the server sent comes back as a *ServerError with the
//     server's text unchanged. Any other error means that the outcome is
//     unknown: the script may have run, may be running, or may yet run.
//   - A script is sent as EVALSHA. Only when the server answers NOSCRIPT,
//     which means that nothing ran, is it sent once more as EVAL.
//   - The client that the user handed in stays in use, with its pool, options
//     and hooks, and stays the user's: a driver never closes it.
//   - A library may repeat a call whose reply was lost. All scripts of zamok are
//     written so that a second run does no harm.
package driver

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Driver sends calls to a server, or to a cluster of them. Its methods may be
// called from many goroutines at once.
type Driver interface {
	// Eval runs one script and returns its reply: nil, an int64, a string, or a
	// []any of these. The error is a *ServerError when the server refused or
	// the script failed; any other error leaves the outcome unknown. The call's
	// slices are not kept after an orderly return, and not changed ever.
	Eval(ctx context.Context, call Call) (any, error)

	// EvalAll runs the calls as one pipeline for each server that they concern
	// and returns one result for each, in the order of the calls. Calls do not
	// affect each other: one that fails, or a server that hangs, delays and
	// fails no call to another. It returns when all calls have ended, each by
	// the limit given to it. A script that the server did not know was run all
	// the same when it returns.
	EvalAll(ctx context.Context, calls []Call) []Result

	// EvalWait is Eval, and then WAIT on the same connection: it returns the
	// script's reply and how many replicas have all that the server had written by
	// then, also by others. It returns as soon as there are as many as asked for, or
	// when the timeout has passed, 1 ms or more, with those that there are. An error
	// is that of the script or of WAIT, and leaves the number unknown. The call's
	// limit is for both together.
	EvalWait(ctx context.Context, call Call, replicas int, timeout time.Duration) (reply any, acked int64, err error)

	// Do sends a plain command that names no key, such as INFO or SCAN, to one
	// server, which need not be the same for each call, and returns the reply
	// as Eval does. Maps come as flat []any of keys and values. The limit is as
	// in Call.
	Do(ctx context.Context, limit time.Duration, args ...string) (any, error)

	// Clustered says whether the calls go to a cluster, where each server has
	// some of the slots. It is told by the client, without a request, and never
	// changes.
	Clustered() bool

	// Subscribe subscribes to one channel on a connection of its own. It
	// returns once the server has confirmed, or with the error that prevented
	// it, within the limit; nothing is left behind then. A channel that is
	// Sharded is subscribed to at the primary of its slot, and is Broken when the
	// slot goes to another one: at the next PING at the latest, whether or not the
	// driver is used for anything else.
	//
	// From then on handle is called for every event, one at a time and in order,
	// beginning with the first Subscribed. It does not block. The driver
	// keeps the connection alive (a PING every 10 s at most, an answer within
	// as much again) and, when it breaks, connects and subscribes again until
	// Close, waiting between 50 ms and 2 s between attempts.
	Subscribe(ctx context.Context, limit time.Duration, channel string, handle func(Event)) (Subscription, error)
}

// Sharded says whether a channel belongs to a slot of a cluster, as a key does:
// whether its name ends with a hash tag. It is subscribed to with SSUBSCRIBE, and
// what is sent to it with SPUBLISH stays in its shard, whose primary counts those
// who listen. All others are for SUBSCRIBE and PUBLISH.
func Sharded(channel string) bool { return strings.HasSuffix(channel, "}") }

// NotServed says whether err is a server's answer that the slot of a command's key is
// another server's, or that it serves none at the moment. A subscription to a Sharded
// channel of that slot is of no use there then: a primary that became a replica takes
// and keeps it, and who hands over at the new one hears nobody. A driver learns of it
// by GETEX of a key named like the channel, which is never there: GETEX changes
// nothing, but is a write, which also a connection for reading from replicas refuses.
func NotServed(err error) bool {
	se, ok := err.(*ServerError)
	return ok && (se.Code() == "MOVED" || se.Code() == "CLUSTERDOWN")
}

// Call is one run of a script.
type Call struct {
	Script *Script
	Keys   []string
	Args   []string

	// Limit bounds the call beside ctx: a call that has not been answered by
	// then ends with an error that wraps context.DeadlineExceeded. It must be
	// positive. It stands here and not in ctx because a context with a deadline
	// costs five allocations, and every cycle of a lock makes two calls.
	Limit time.Duration
}

// Result is what came of one call of EvalAll.
type Result struct {
	Reply any
	Err   error
}

// Subscription is a live subscription to one channel.
type Subscription interface {
	// Close ends the subscription and its goroutines. When it returns, handle
	// is not running and will not be called again, so it must not be called
	// from within handle. A second Close does nothing.
	Close() error
}

// Event is something that happened to a subscription.
type Event struct {
	Kind    EventKind
	Payload string // of a Message
	Err     error  // of Broken: why
}

// EventKind says what happened.
type EventKind int

const (
	// Subscribed: the server confirmed the subscription, for the first time or
	// again after a break. Messages published in between are lost.
	Subscribed EventKind = iota + 1
	// Message: a message was published to the channel.
	Message
	// Broken: the connection is gone, or the server ended the subscription.
	// Nothing arrives until the next Subscribed.
	Broken
)

// ServerError is an error that the server itself sent, so the outcome is known
// as far as the server's text tells it.
type ServerError struct {
	Text string // as received, for example "NOPERM this user has no permissions to run the 'evalsha' command"
}

func (e *ServerError) Error() string { return e.Text }

// Code returns the first word of the text, such as "NOPERM" or "ERR".
func (e *ServerError) Code() string {
	code, _, _ := strings.Cut(e.Text, " ")
	return code
}

// Script is a Lua script. It is immutable and may be shared.
//
// It carries no hash: the name under which a server caches a script is the
// server's to tell (see Hashes), because SHA-1 is not to be had in a program
// that runs with GODEBUG=fips140=only.
type Script struct {
	name   string
	source string
}

// NewScript makes a script. The name is for errors, traces and the in-memory
// driver; the source is what the server runs.
func NewScript(name, source string) *Script {
	return &Script{name: name, source: source}
}

// Name returns the name given to NewScript.
func (s *Script) Name() string { return s.name }

// Source returns the Lua text.
func (s *Script) Source() string { return s.source }

func (s *Script) String() string { return fmt.Sprintf("script %q", s.name) }
