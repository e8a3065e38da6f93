package zamok

import (
	"errors"
	"strings"

	"github.com/zamok-go/zamok/driver"
)

// refusals are the server's errors that trying again does not change. The code
// is looked for anywhere in the text, because an error within a script comes in
// other words before Redis 7 ("ERR Error running script … WRONGTYPE …") and some
// have wordings of their own within scripts.
var refusals = []struct{ text, code, hint string }{
	{"NOPERM", "NOPERM", "give the user the rights that docs/guarantees.md lists"},
	{"can't run this command or subcommand script", "NOPERM", "give the user the rights that docs/guarantees.md lists"},
	{"can't access at least one of the keys mentioned", "NOPERM", "give the user the keys that docs/guarantees.md lists"},
	{"can't publish to the channel mentioned", "NOPERM", "give the user the channels that docs/guarantees.md lists"},
	{"The user executing the script", "NOPERM", "give the user the rights that docs/guarantees.md lists"},
	{"NOAUTH", "NOAUTH", "the server asks for a password and got none: set user and password in the client's options"},
	{"WRONGPASS", "WRONGPASS", "user or password are wrong: check the client's options"},
	{"invalid password", "WRONGPASS", "user or password are wrong: check the client's options"},
	{"AUTH <password> called without any password configured", "WRONGPASS", "a password was given, but the server has none: check the client's options"},
	{"WRONGTYPE", "WRONGTYPE", "a key of this lock is in use for something else: choose another name or prefix"},
	{"CROSSSLOT", "CROSSSLOT", "the keys of one lock must share a slot: check the braces in its name and prefix"},
	{"unknown command", "ERR", "the server is older than Redis 6.2 or a command is disabled or renamed: see docs/guarantees.md"},
	{"invalid expire time", "ERR", "the server does not accept this TTL"},
	{"scripts are disabled", "ERR", "the server must allow Lua scripts: zamok decides everything in them"},
	{"This instance has cluster support disabled", "ERR", "the client is set up for a cluster, but the server is none"},
	{"Error compiling script", "ERR", "the server could not read the script"},
	{"user_script", "ERR", "the script failed on the server"},
	{"Error running script", "ERR", "the script failed on the server"},
}

// transient are server errors that pass by themselves: they are tried again, by
// a call that has not yet had an answer for Config.GiveUp, by a waiter until its
// ctx ends. They are looked for first and at the beginning of the text or, in a
// script's error, anywhere.
var transient = []string{
	"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MOVED ", "ASK ", "BUSY ", "UNKILLABLE",
	"MISCONF", "NOREPLICAS", "OOM ", "NOSCRIPT", "max number of clients reached",
}

// refusal returns the permanent refusal that err is, or nil when trying again
// may help: a broken connection, a time limit, a server that is not ready.
func refusal(name string, err error) *ServerError {
	var se *driver.ServerError
	if !errors.As(err, &se) {
		return nil
	}
	for _, text := range transient {
		if strings.Contains(se.Text, text) {
			return nil
		}
	}
	for _, r := range refusals {
		if strings.Contains(se.Text, r.text) {
			return &ServerError{Name: name, Code: r.code, Hint: r.hint, Err: err}
		}
	}
	return nil
}
