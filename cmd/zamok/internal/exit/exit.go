// Package exit is the one table of the program's exit codes: the help text, the
// documentation and the tests are made of it.
package exit

import "strconv"

// The codes that are zamok's own. They follow sysexits.h where it has one, and
// timeout(1) and the shell where those have.
const (
	OK          = 0
	Failed      = 1
	Usage       = 64
	Mismatch    = 65
	Unavailable = 69
	Bug         = 70
	Output      = 74
	NotObtained = 75
	Denied      = 77
	Config      = 78
	Lost        = 79
	Undecided   = 80
	MaxRun      = 124
	CannotRun   = 126
	NotFound    = 127
	Interrupted = 130
	Terminated  = 143
)

// Signal returns the code of what a signal ended.
func Signal(number int) int { return 128 + number }

// Entry is one line of the table.
type Entry struct {
	Code    string
	Meaning string
}

// Table lists what `zamok run` and `zamok once` can exit with; the other commands
// use the same codes. A command of the user's may of course use any of them itself.
func Table() []Entry {
	return []Entry{
		{"0-255", "the command's own exit code"},
		{"128+N", "the command was ended by signal N"},
		line(Usage, "the command line is wrong"),
		line(Mismatch, "once: KEY was used before with another input"),
		line(Unavailable, "the server could not be reached within --connect-timeout"),
		line(Bug, "a bug in zamok, or a failure of this machine, such as no more processes"),
		line(Output, "stdout could not be written"),
		line(NotObtained, "the lock was not obtained, with -n, -w or --tick; -E sets another code"),
		line(Denied, "the server refused the password, or the user lacks a right"),
		line(Config, "the configuration is wrong: a file, an environment variable, the server, this host's clock"),
		line(Lost, "the lock was lost, and the command was stopped; or the token does not hold it"),
		line(Undecided, "once: a run of KEY was interrupted, and nobody knows whether it was done"),
		line(MaxRun, "the command ran longer than --max-run and was stopped"),
		line(CannotRun, "the command cannot be executed"),
		line(NotFound, "the command was not found"),
		line(Interrupted, "interrupted (Ctrl-C) while waiting for the lock"),
		line(Terminated, "terminated (SIGTERM) while waiting for the lock"),
	}
}

func line(code int, meaning string) Entry { return Entry{strconv.Itoa(code), meaning} }
