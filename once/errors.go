package once

import (
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
)

// Conditions to test for with errors.Is. Each comment says from what, and what is
// remembered then.
var (
	// ErrInterrupted: an earlier run began and did not tell its end, and under
	// GiveUp nobody runs it again. From Do, always an *InterruptedError. That it
	// began stays remembered.
	ErrInterrupted = errors.New("zamok: once: an earlier run did not tell its end")

	// ErrFailed: an earlier run failed for good. From Do, always a *FailedError.
	ErrFailed = errors.New("zamok: once: an earlier run failed")

	// ErrMismatch: the key was used with another input. From Do and Resolve, always
	// a *MismatchError. Nothing ran, nothing was changed.
	ErrMismatch = errors.New("zamok: once: the key belongs to another input")

	// ErrNotStored: the function ran to its end here, and it is not known that this
	// is remembered. From Do, always a *NotStoredError; the Outcome has the value.
	// Under GiveUp later calls get the outcome or ErrInterrupted; under Retry they
	// may run it again.
	ErrNotStored = errors.New("zamok: once: the end of the run was not stored")
)

// InterruptedError tells of a run that began and did not tell its end. Nobody
// knows what it did. errors.Is(err, ErrInterrupted) holds.
type InterruptedError struct {
	Key     string
	ID      string       // Run.ID, by which a downstream service may know what was done
	By      zamok.Holder // who ran it
	Began   time.Time    // by the server's clock
	Attempt int
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("zamok: once %q: a run of %s that began at %s did not tell its end, so it may or may not have been done, and is not done again; find out (id %s), then Resolve or Forget it",
		e.Key, e.By, e.Began.UTC().Format(time.RFC3339), e.ID)
}

// Is reports whether target is ErrInterrupted.
func (e *InterruptedError) Is(target error) bool { return target == ErrInterrupted }

// FailedError replays the failure of an earlier run. errors.Is(err, ErrFailed)
// holds.
type FailedError struct {
	Key     string
	ID      string       // Run.ID
	Text    string       // of the function's error, at most 1,024 bytes of it
	By      zamok.Holder // who ran it
	Began   time.Time    // by the server's clock
	Attempt int
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("zamok: once %q: an earlier run failed: %s", e.Key, e.Text)
}

// Is reports whether target is ErrFailed.
func (e *FailedError) Is(target error) bool { return target == ErrFailed }

// MismatchError says that a key was used for two inputs. errors.Is(err,
// ErrMismatch) holds.
type MismatchError struct {
	Key string
	ID  string // Run.ID
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("zamok: once %q: the key was used before with another input; a key must belong to one thing to do", e.Key)
}

// Is reports whether target is ErrMismatch.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// NotStoredError says why the end of a run was not stored. errors.Is(err,
// ErrNotStored) holds.
type NotStoredError struct {
	Key string
	Err error // a *zamok.LostError when the lease was lost; zamok.ErrUnknown: it may be stored
}

func (e *NotStoredError) Error() string {
	return fmt.Sprintf("zamok: once %q: the run ended, and it is not known that this is remembered: %v", e.Key, e.Err)
}

// Is reports whether target is ErrNotStored.
func (e *NotStoredError) Is(target error) bool { return target == ErrNotStored }

func (e *NotStoredError) Unwrap() error { return e.Err }

// verdictError is an error of a function that says what becomes of the key.
type verdictError struct {
	error
	state string
}

func (e *verdictError) Unwrap() error { return e.error }

// Again marks an error of the function: nothing was done, and the next call may
// run it, whatever the policy. It is for failures that came before the effect, such
// as a connection that was refused. Of nil it is nil.
func Again(err error) error { return verdictOf(err, again) }

// Final marks an error of the function: it failed for good, and that is stored and
// replayed, whatever the policy. Of nil it is nil.
func Final(err error) error { return verdictOf(err, failed) }

func verdictOf(err error, state string) error {
	if err == nil {
		return nil
	}
	return &verdictError{err, state}
}

// verdict is the state in which a run leaves its key.
func (o *Once) verdict(err error) string {
	var v *verdictError
	switch {
	case err == nil:
		return done
	case errors.As(err, &v):
		return v.state
	case o.cfg.Policy == Retry:
		return again
	}
	return failed
}
