package zamok

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zamok-go/zamok/driver"
)

// refusals are the server's errors that trying again does not change. The code
// is looked for anywhere in the text, because an error within a script comes in
// other words before Redis 7 ("ERR Error running script … WRONGTYPE …") and some
// have wordings of their own within scripts.
var refusals = []struct{ text, code, hint string }{
	{"zamok: other terms", "ERR", "all clients of a deployment need the same Config.Quarantine and, of a quorum, the same names of its members: see docs/guarantees.md"},
	{"zamok: members of a quorum", "ERR", "give NewQuorum primaries that share nothing, each once: see docs/guarantees.md"},
	{"'run' (a nil value)", "ERR", "the server's INFO tells no run_id, which Config.Quarantine needs"},
	{"the 'wait' command", "NOPERM", "Config.WaitReplicas needs the right +wait"},
	{"unknown command 'WAIT'", "ERR", "this server or proxy has no WAIT: leave Config.WaitReplicas at 0"},
	{"unknown command `WAIT`", "ERR", "this server or proxy has no WAIT: leave Config.WaitReplicas at 0"},
	{"NOPERM", "NOPERM", "give the user the rights that docs/guarantees.md lists"},
	{"can't run this command or subcommand script", "NOPERM", "give the user the rights that docs/guarantees.md lists"},
	{"can't access at least one of the keys mentioned", "NOPERM", "give the user the keys that docs/guarantees.md lists"},
	{"can't publish to the channel mentioned", "NOPERM", "give the user the channels that docs/guarantees.md lists"},
	{"ACL failure in script", "NOPERM", "give the user the rights that docs/guarantees.md lists"}, // Redis 8 and Valkey
	{"The user executing the script", "NOPERM", "give the user the rights that docs/guarantees.md lists"},
	{"NOAUTH", "NOAUTH", "the server asks for a password and got none: set user and password in the client's options"},
	// What a server answers, instead, to a command of more than ten arguments or
	// 16 KiB: an EVALSHA of acquire has eleven.
	{"unauthenticated", "NOAUTH", "the server asks for a password and got none: set user and password in the client's options"},
	{"WRONGPASS", "WRONGPASS", "user or password are wrong: check the client's options"},
	{"invalid password", "WRONGPASS", "user or password are wrong: check the client's options"},
	{"AUTH <password> called without any password configured", "WRONGPASS", "a password was given, but the server has none: check the client's options"},
	{"WRONGTYPE", "WRONGTYPE", "a key of this lock is in use for something else: choose another name or prefix"},
	{"CROSSSLOT", "CROSSSLOT", "the keys of one lock must share a slot: check the braces in its name and prefix"},
	{"DB index is out of range", "ERR", "the server has fewer databases: check the number in the client's options"},
	{"unknown command", "ERR", "the server is older than Redis 6.2 or a command is disabled or renamed: see docs/guarantees.md"},
	{"invalid expire time", "ERR", "the server does not accept this TTL"},
	{"scripts are disabled", "ERR", "the server must allow Lua scripts: zamok decides everything in them"},
	{"This instance has cluster support disabled", "ERR", "the client is set up for a cluster, but the server is none"},
	{"Error compiling script", "ERR", "the server could not read the script"},
	{"user_script", "ERR", "the script failed on the server"},
	{"Error running script", "ERR", "the script failed on the server"},
}

// passing are server errors that pass by themselves, with what helps them to:
// they are tried again, by a call that has not yet had an answer for
// Config.GiveUp, by a waiter until its ctx ends. They are looked for first and
// anywhere in the text, as a script's error has other words before them.
var passing = []struct{ text, hint string }{
	{"LOADING", "the server is loading its data: wait until it has"},
	{"MASTERDOWN", "this is a replica that has lost its primary: connect to the primary"},
	{"READONLY", "this is a replica: connect to the primary, through Sentinel or a client for clusters"},
	{"CLUSTERDOWN", "the cluster does not serve this slot: see CLUSTER INFO"},
	{"TRYAGAIN", "a slot is being moved"},
	{"MOVED ", "this is a cluster: use a client for clusters"},
	{"ASK ", "this is a cluster: use a client for clusters"},
	{"BUSY ", "a script keeps the server busy: SCRIPT KILL ends it"},
	{"UNKILLABLE", "a script that has written keeps the server busy"},
	{"MISCONF", "the server cannot save its data and refuses writes: see its log"},
	{"NOREPLICAS", "too few replicas follow for min-replicas-to-write"},
	{"OOM ", "the server's memory is full: raise maxmemory, or remove keys; what is held can still be renewed and released"},
	{"NOSCRIPT", "the server forgot the script again and again: does something run SCRIPT FLUSH?"},
	{"max number of clients reached", "the server has too many connections: raise maxclients"},
}

// passingHint is what helps when the server's error is one that passes; else it is empty.
func passingHint(se *driver.ServerError) string {
	for _, p := range passing {
		if strings.Contains(se.Text, p.text) {
			return p.hint
		}
	}
	return ""
}

// isMoving says that the server had some of a script's keys and not the others, because
// their slot is on its way to another server: nothing was done.
func isMoving(err error) bool {
	var se *driver.ServerError
	return errors.As(err, &se) && strings.Contains(se.Text, "TRYAGAIN")
}

// UnavailableError says why the server gave no usable answer, and what may help.
// errors.Is(err, ErrUnavailable) holds.
type UnavailableError struct {
	Hint string
	Err  error // the last failure
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("server unavailable: %v (%s)", e.Err, e.Hint)
}

// Is reports whether target is ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

func (e *UnavailableError) Unwrap() error { return e.Err }

// unavailable adds the hint that goes with a failure.
func unavailable(err error) error {
	hint := "check that the server runs and that its address is right"
	var se *driver.ServerError
	switch {
	case errors.As(err, &se):
		hint = cmp.Or(passingHint(se), "see the server's words before this")
	case errors.Is(err, context.DeadlineExceeded):
		hint = "it did not answer in time: check its load, and the network"
	}
	return &UnavailableError{Hint: hint, Err: err}
}

// refusal returns the permanent refusal that err is, or nil when trying again
// may help: a broken connection, a time limit, a server that is not ready.
func refusal(name string, err error) *ServerError {
	var se *driver.ServerError
	if !errors.As(err, &se) {
		return nil
	}
	if passingHint(se) != "" {
		return nil
	}
	for _, r := range refusals {
		if strings.Contains(se.Text, r.text) {
			return &ServerError{Name: name, Code: r.code, Hint: r.hint, Err: err}
		}
	}
	return nil
}
