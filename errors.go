package zamok

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Conditions to test for with errors.Is. Each comment names the methods that
// return it and the state in which the server is left.
var (
	// ErrHeld: somebody else has the lock. From TryLock and TryDo at once, from
	// Lock and Do when MutexConfig.Wait or ctx ended; always a *HeldError. The
	// caller is not in the queue, or will be taken out of it within moments.
	ErrHeld = errors.New("zamok: held by another")

	// ErrLost: the lease is over although nobody here released it; always a
	// *LostError, which says why. From every method of Lease, from Do, from what
	// takes a token (Resume, ExtendToken, ReleaseToken), and as the cause of the
	// lease's context. Nothing of it is left on the server, or it ends there by
	// its TTL.
	ErrLost = errors.New("zamok: lease lost")

	// ErrReleased: the lease was released or detached before. From every method
	// of Lease, and as the cause of its context.
	ErrReleased = errors.New("zamok: lease released")

	// ErrClosed: the client is closed. From every call that would take a lock, and
	// from those that take a token.
	ErrClosed = errors.New("zamok: client closed")

	// ErrUnavailable: the server gave no usable answer within Config.GiveUp or
	// the time that ctx allows; mostly an *UnavailableError, which keeps the cause. From everything that asks the
	// server. It never means that the lock is held by
	// another, unless the error is a *HeldError too: then that was the last answer. What the server
	// may have done all the same is undone behind.
	ErrUnavailable = errors.New("zamok: server unavailable")

	// ErrUnknown: nobody can say whether the caller's script ran. From
	// Lease.Run only. It ran at most once.
	ErrUnknown = errors.New("zamok: outcome unknown")
)

// ConfigError is a mistake in a name, an option or an argument. Nothing was
// sent to the server. Every call of a Mutex that was made with a mistake returns
// it.
type ConfigError struct {
	Field string // such as "name", "Config.TTL", "MutexConfig.Key"
	Err   error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("zamok: bad %s: %v", e.Field, e.Err) }

func (e *ConfigError) Unwrap() error { return e.Err }

func badField(field, format string, args ...any) error {
	return &ConfigError{Field: field, Err: fmt.Errorf(format, args...)}
}

// HeldError says who has the lock. errors.Is(err, ErrHeld) holds.
type HeldError struct {
	Name   string
	Holder Holder
	// Service and Reason are what the holder's client says of itself: Config.Name
	// and MutexConfig.Reason; empty when nothing is known, and of a wait that ctx
	// ended within the first seconds.
	Service string
	Reason  string
	Fence   int64         // of the holder; 0 for a foreign one
	Since   time.Duration // how long it has held, by the server's clock; 0 when not known
	TTL     time.Duration // what was left of its lease when the server was last asked
	NoTTL   bool          // a key that never expires: a foreign one, or somebody took its TTL off
	// Permits is how many a semaphore has and InUse how many are held; 0 for a lock.
	// Then Holder is the one whose lease is the first to end, and TTL what was left
	// of that.
	Permits int
	InUse   int
	// Quarantine: nobody is granted anything for TTL, whoever holds (Config.Quarantine).
	// Only Trace.Waiting sees it: a call that ends then returns a *QuarantineError.
	Quarantine bool
	Readers    int           // how many readers have an RWMutex; else 0. Then Holder is one of them, as of a semaphore, and TTL what was left of the last
	Waited     time.Duration // how long this call waited
	Place      int           // the place in the queue that was given up, from 1; 0 when it did not wait
	Err        error         // why waiting ended: ctx's error, the last failure of a request, both joined, or nil
}

func (e *HeldError) Error() string {
	var b strings.Builder
	kind := "lock"
	if e.Permits > 0 {
		kind = "semaphore"
	}
	fmt.Fprintf(&b, "zamok: %s %q not acquired", kind, e.Name)
	if e.Waited > 0 {
		fmt.Fprintf(&b, " after %v", e.Waited.Round(time.Millisecond))
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	fmt.Fprintf(&b, ": %s", e.Describe())
	return b.String()
}

// Describe says who holds the lock, since when, and what is left, in one line
// for people: "held by mailer on web-3 pid 4711 for 12s (fence 17959…, 9s left):
// sending invoices".
func (e *HeldError) Describe() string {
	var b strings.Builder
	switch {
	case e.Quarantine:
		return quarantineText(e.TTL)
	case e.Permits > 0:
		fmt.Fprintf(&b, "%d of %d permits are held, one by ", e.InUse, e.Permits)
	case e.Readers > 1:
		fmt.Fprintf(&b, "%d readers hold it, one of them ", e.Readers)
	case e.Readers == 1:
		b.WriteString("a reader holds it: ")
	case e.Holder.Resting:
		b.WriteString("resting after ")
	default:
		b.WriteString("held by ")
	}
	if e.Service != "" {
		b.WriteString(e.Service + " on ")
	}
	b.WriteString(e.Holder.String())
	if since := roundForPeople(e.Since); since > 0 {
		fmt.Fprintf(&b, " for %v", since)
	}
	switch {
	case e.NoTTL:
		b.WriteString(" (no TTL: it never expires by itself)")
	case e.Fence > 0:
		fmt.Fprintf(&b, " (fence %d, %v left)", e.Fence, roundForPeople(e.TTL))
	default:
		fmt.Fprintf(&b, " (%v left)", roundForPeople(e.TTL))
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	return b.String()
}

func roundForPeople(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (e *HeldError) Unwrap() error { return e.Err }

// LossReason says why a lease was lost.
type LossReason string

// The reasons.
const (
	LostExpired LossReason = "not renewed in time"       // its deadline came first, whatever the server did
	LostTaken   LossReason = "taken by another"          // the key holds another token
	LostDeleted LossReason = "key deleted"               // the key is gone before its time
	LostBroken  LossReason = "broken by an operator"     // LostError.Operator and Why say who and why
	LostMaxHold LossReason = "held for the longest time" // MutexConfig.MaxHold
	LostClosed  LossReason = "client closed"             // Client.Close was called
	LostData    LossReason = "server lost its data"      // restarted empty, wiped, or failed over to an older state
)

// LostError says how a lease was lost. errors.Is(err, ErrLost) holds.
type LostError struct {
	Name     string
	Fence    int64      // of the lost lease; 0 when only its token was known
	Reason   LossReason // never empty
	By       Holder     // who has the lock now; zero when nobody, or not known
	Operator string     // who broke it, as they said: "alice@web-1"; else empty
	Why      string     // the operator's reason; else empty
	Err      error      // the last failure of renewal, or nil
}

func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zamok: lost lock %q: %s", e.Name, e.Reason)
	if e.Operator != "" {
		fmt.Fprintf(&b, ", %s", e.Operator)
	}
	if e.Why != "" {
		fmt.Fprintf(&b, ": %s", e.Why)
	}
	if e.By != (Holder{}) {
		fmt.Fprintf(&b, ", now held by %s", e.By)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Is reports whether target is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Unwrap() error { return e.Err }

// ServerError is a refusal that trying again will not change: no permission, a
// wrong password, a key of another type. From Lock, TryLock and Resume, nothing is
// left on the server; from Release, the lock stays until its TTL ends it; from Run,
// see there.
type ServerError struct {
	Name string // of the lock
	Code string // NOPERM, NOAUTH, WRONGPASS, WRONGTYPE, CROSSSLOT or ERR; from Lease.Run any that the script gave
	Hint string // what to do about it
	Err  error  // the server's words
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("zamok: lock %q: the server refused: %v (%s)", e.Name, e.Err, e.Hint)
}

func (e *ServerError) Unwrap() error { return e.Err }

// Denied says whether the refusal is one of rights: who this client is, or what
// it may do.
func (e *ServerError) Denied() bool {
	return e.Code == "NOPERM" || e.Code == "NOAUTH" || e.Code == "WRONGPASS"
}
