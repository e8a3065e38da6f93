package child

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Lease is what Run needs to know of a lease; *zamok.Lease has both methods.
type Lease interface {
	// Context ends when the lease is lost, with the reason as its cause. For the
	// command to have its KillAfter in full, it should end KillAfter·1.25 or more
	// before Deadline (the lock's Grace).
	Context() context.Context

	// Deadline is the time by which the holder must have stopped. It moves when
	// the lease is renewed. It must carry a monotonic reading, as every time
	// derived from time.Now does. The zero time means that there is no deadline:
	// then only the end of Context, or of zamok itself, ends the command.
	Deadline() time.Time
}

// OnLost says what becomes of the command when its lease is lost.
type OnLost int

const (
	// Terminate stops the command before the lease can end on the server.
	Terminate OnLost = iota
	// Ignore leaves it running; Result.Lost tells afterwards. Only the death of
	// zamok itself still ends the command.
	Ignore
)

// Options describe one run. Argv and Lease are required.
type Options struct {
	Argv []string // the command and its arguments; started without a shell
	Env  []string // its environment. Default: os.Environ()

	Lease     Lease
	KillAfter time.Duration // from TERM to KILL, and how long before Deadline TERM comes. Default: KILL follows TERM at once
	MaxRun    time.Duration // longest run, then TERM, KillAfter, KILL. Default: none
	OnLost    OnLost        // Default: Terminate

	// The command inherits these very descriptors; nothing is copied or closed.
	// Default: os.Stdin, os.Stdout, os.Stderr
	Stdin, Stdout, Stderr *os.File

	// Ignored are the signals that were ignored when zamok was started. They are
	// neither forwarded nor enabled for the command, so that nohup works through
	// zamok. A program that calls signal.Notify or NotifyContext before Run must
	// take IgnoredAtStart before that, since Notify erases the knowledge.
	// Default: IgnoredAtStart() at the call of Run
	Ignored []os.Signal

	// Logf gets one line, without a newline, for each thing that the user should
	// know: why the command is being stopped, that a keeper was replaced.
	// Default: nothing is said
	Logf func(format string, args ...any)

	step func(string) // tests: called between the steps of the start
}

// End says why a run ended.
type End int

const (
	// Exited: the command ended by itself, or by a signal from outside.
	Exited End = iota
	// NotStarted: the command could not be started; Code is 126 or 127 and Err a
	// *StartError, or Code is 70 when the keeper could not be started.
	NotStarted
	// Lost: the command was stopped because the lease was lost; Err is the cause
	// of the lease's context, or ErrNotRenewed.
	Lost
	// MaxRun: the command was stopped because it ran longer than Options.MaxRun.
	MaxRun
	// Cancelled: the command was stopped because ctx ended; Err is its cause.
	Cancelled
	// Unguarded: the command was stopped because its keeper died and no other
	// could be started; Err says why.
	Unguarded
)

// Result tells how a run ended. No process of the command's group is alive when
// Run returns it.
type Result struct {
	// Code is the command's own exit code, 128 + Signal if a signal ended it, 127
	// if it was not found, 126 if it could not be started, 70 if zamok failed. It
	// is the command's also when End is Lost or MaxRun: the caller maps End to 79
	// or 124 first.
	Code   int
	Signal syscall.Signal // the signal that ended the command, else 0
	End    End
	Err    error // why, for every End but Exited; also the cause when LeaseLost

	LeaseLost    bool           // the lease was lost while the command ran (with Ignore, End is Exited)
	WhileStopped bool           // it was lost while zamok was stopped (Ctrl-Z, SIGSTOP), so nobody renewed it
	Forwarded    syscall.Signal // the last of INT, TERM, HUP, QUIT that was passed on to the command, else 0
	Ran          time.Duration  // from the command's start to the end of its group

	raise syscall.Signal // ended by a key at a terminal that zamok had handed to the command
}

// ErrNotRenewed is Result.Err when the lease came so near to its deadline that
// the command had to be stopped, although its context had not ended.
var ErrNotRenewed = errors.New("child: the lease was not renewed in time")

// StartError tells why a command could not be started.
type StartError struct {
	Name string // as given in Argv[0]
	Code int    // 127: not found; 126: found, but it cannot be executed
	Err  error
}

// Error gives the name and the reason.
func (e *StartError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap gives the system's error.
func (e *StartError) Unwrap() error { return e.Err }
