package zamok

import (
	"fmt"
	"time"

	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/lua"
)

// kind is what a lease is of. All kinds have the same life; they differ in the
// scripts that decide, and in what these are given.
type kind uint8

const (
	writer kind = iota // of a Mutex, which is the writer of the RWMutex of its name
	reader             // of an RWMutex
	permit             // of a Semaphore
)

// reader is what the writer of an RWMutex becomes by Downgrade. A reader leaves no
// rest.
func (s *spec) reader() *spec {
	r := *s
	r.rw, r.minHold = false, 0
	r.kind = reader
	return &r
}

// shared says whether several have it at a time. What each has is then a member of
// a list, with an end of its own, and the fences between are the others'.
func (s *spec) shared() bool { return s.kind != writer }

// String names what the spec is of, for errors.
func (s *spec) String() string {
	if s.kind == permit {
		return fmt.Sprintf("semaphore %q", s.keys.Name)
	}
	return fmt.Sprintf("lock %q", s.keys.Name)
}

// mode is how who wants this stands in a queue.
func (s *spec) mode() string { return [...]string{writer: "w", reader: "r", permit: "p"}[s.kind] }

// acquireCall takes it, or joins the queue. args are token, ttl in ms, inbox, ticket
// and mode.
func (s *spec) acquireCall(args []string) driver.Call {
	call := driver.Call{Script: lua.Acquire, Keys: s.keys.Main, Args: args}
	switch s.kind {
	case reader:
		call.Script = lua.ReadAcquire
	case permit:
		call.Script, call.Args = lua.SemAcquire, append(args, s.permits)
	}
	return s.deciding(call)
}

// renewCall asks for a token whether it still holds, and raises what is left. args
// are token and ms.
func (s *spec) renewCall(args []string, limit time.Duration) driver.Call {
	call := driver.Call{Script: lua.Renew, Keys: s.keys.One(), Args: args, Limit: limit}
	switch s.kind {
	case reader:
		call.Keys = s.keys.Reader()
	case permit:
		call.Script, call.Keys = lua.SemRenew, s.keys.Permit()
	}
	return call
}

// releaseCall gives up what a token has. args are token, member and rest, of which
// a semaphore has none.
func (s *spec) releaseCall(args []string, limit time.Duration) driver.Call {
	call := driver.Call{Script: lua.Release, Keys: s.keys.Main, Args: args, Limit: limit}
	if s.kind == permit {
		args[2] = s.permits
		call.Script = lua.SemRelease
	}
	return s.deciding(call)
}

// autopsy is the call that asks what is left of a lease with that token that is
// over.
func (s *spec) autopsy(token string) driver.Call {
	if s.shared() {
		return driver.Call{Script: lua.Fate, Keys: s.keys.Fate(), Args: []string{token}, Limit: diagnosis}
	}
	return driver.Call{Script: lua.Inspect, Keys: s.keys.Broken(), Args: []string{"0"}, Limit: diagnosis}
}

// found reads the answer of a release, which does not say whether it was asked by a
// reader: that others read says nothing of one whose own share has ended.
func (s *spec) found(ans answer) answer {
	if s.kind == reader && ans.status == "other" && isReaders(ans.holder) {
		ans.status, ans.holder = "absent", ""
	}
	return ans
}
