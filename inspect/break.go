package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/token"
)

const (
	mostBy  = 128
	mostWhy = 256
)

// BreakConfig says who breaks a lock, why, and how. The zero value of every field
// but Why is its default.
type BreakConfig struct {
	// Token says whose lease is broken: that of one of Lock.Holders.
	// Default: the only one.
	Token string

	// By is who breaks it, for the holder's error and the list of events. At most
	// 128 bytes; what cannot be printed becomes a space, and "!" becomes "_".
	// Default: user@host of this process.
	By string

	// Why is the reason, for the same. It must be given: 1 to 256 bytes; what
	// cannot be printed becomes a space.
	Why string

	// Now takes the lock away at once, whatever its holder is doing. Default: the
	// holder is asked to end it.
	Now bool
}

// Broken is what came of a break.
type Broken struct {
	Name   string
	Key    string
	Holder zamok.Holder // who was asked, or had it
	Fence  int64

	// Asked: the holder was asked, and has the lock until it ends it, for Left at
	// most. Otherwise the lock was taken from it.
	Asked bool
	Left  time.Duration

	// By and Why are what the holder is told. When somebody had asked it before,
	// they are what that one said: a second asking changes nothing.
	By  string
	Why string

	// Next is who has the lock that was taken, and its fence: the first who waited,
	// or, of one that had been taken before, who has come since. Empty when nobody
	// has it, when the holder was asked, and of a semaphore, whose permit goes to the
	// first who waits all the same. Next.Readers: readers have the lock.
	Next      zamok.Holder
	NextFence int64

	// AuditErr is why the break could not be put on the list of events. The lock
	// is broken all the same.
	AuditErr error
}

var (
	// ErrChanged: the holder has the lock no more: another, or nobody has. From Break;
	// always a *ChangedError. Nothing was changed on the server.
	ErrChanged = errors.New("inspect: the lock has changed hands")

	// ErrDeaf: the holder is no client of zamok, or has left its lock at rest, so
	// nobody is there to be asked. From Break without BreakConfig.Now. Nothing was
	// changed on the server.
	ErrDeaf = errors.New("inspect: the holder cannot be asked")
)

// ChangedError says who has the lock that was to be broken.
// errors.Is(err, ErrChanged) holds.
type ChangedError struct {
	Kind  Kind
	Name  string
	Now   zamok.Holder // empty when nobody has it, and when readers or a semaphore lost one of several
	Fence int64        // of Now; 0 for a foreign one
}

func (e *ChangedError) Error() string {
	if e.Kind != KindLock {
		return fmt.Sprintf("inspect: %q: this one of its holders has ended its lease; nothing was broken", title(e.Kind, e.Name))
	}
	return fmt.Sprintf("inspect: lock %q has changed hands: %v has it now; nothing was broken, look again", e.Name, e.Now)
}

// Is reports whether target is ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// Break ends a lease that l shows, and no other: when the lock has changed hands
// since, however often, it is left alone and the error is ErrChanged. Where several
// have it, BreakConfig.Token says whose.
//
// Without BreakConfig.Now the holder is asked. It has the lock still, so that
// nobody else can have it, but its lease cannot be renewed any more: its context
// ends, with a *zamok.LostError that says who broke it and why, when it learns of
// it: at its next renewal, which comes after a third of its TTL and 5 minutes at
// most, and at once if its TTL is more than 30 s. The lock is free when the holder
// releases it, or when Broken.Left is over.
//
// With Now the lock is taken from it, and goes to the first who waits. The holder
// learns of it as fast, but until then both act as if they had the lock. Only the
// fence keeps the older one from doing harm: see zamok.Lease.Fence.
//
// Each break is put on the list of events. The error is ErrChanged, ErrDeaf, or a
// *zamok.ConfigError (nothing was sent); any other wraps the driver's, and then it
// is not known whether the lock is broken. Breaking the same lease again changes
// nothing that the first time did, and tells: also with Now, whoever has the lock
// meanwhile.
func (i *Inspector) Break(ctx context.Context, l Lock, cfg *BreakConfig) (Broken, error) {
	if cfg == nil {
		cfg = &BreakConfig{}
	}
	by, why, err := cfg.checked()
	if err != nil {
		return Broken{}, err
	}
	h, err := l.chosen(cfg.Token)
	if err != nil {
		return Broken{}, err
	}
	set, err := i.set(l.Name, l.Key)
	if err != nil {
		return Broken{}, &zamok.ConfigError{Field: "Lock.Key", Err: err}
	}
	x := &breaking{in: i, lock: &l, holder: h, set: set, note: token.Note(by, why), now: cfg.Now}
	x.broken = Broken{Name: l.Name, Key: set.Lock, Holder: h.Holder, Fence: h.Fence, By: by, Why: why}
	if l.Shared() {
		err = x.one(ctx)
	} else {
		err = x.all(ctx)
	}
	if err != nil {
		return Broken{}, err
	}
	// The list tells of each asking, and not only what the holder is told.
	x.broken.AuditErr = x.audit(ctx, by, why)
	return x.broken, nil
}

// chosen is the holder whose lease is to be broken.
func (l *Lock) chosen(token string) (Holder, error) {
	for _, h := range l.Holders {
		if token == h.Token || token == "" && l.Holding == 1 {
			return h, nil
		}
	}
	switch {
	case l.Holding == 0: // also of one that Show did not return, without an error
		return Holder{}, &zamok.ConfigError{Field: "Lock", Err: fmt.Errorf("nobody holds %q", l.Title())}
	case token == "":
		return Holder{}, &zamok.ConfigError{Field: "BreakConfig.Token", Err: fmt.Errorf("it is empty, and %q has %d holders: say which", l.Title(), l.Holding)}
	case l.Shared() && l.Holding > len(l.Holders):
		return Holder{Holder: holderOf(token)}, nil // of the many that are not listed
	}
	return Holder{}, &zamok.ConfigError{Field: "BreakConfig.Token", Err: fmt.Errorf("none of the holders of %q has this token", l.Title())}
}

// checked returns who and why, in the form in which they are kept.
func (c *BreakConfig) checked() (by, why string, err error) {
	by, why = strings.ReplaceAll(printable(c.By), "!", "_"), printable(c.Why)
	if by == "" {
		by = defaultBy()
	}
	switch {
	case len(by) > mostBy:
		err = &zamok.ConfigError{Field: "BreakConfig.By", Err: fmt.Errorf("%d bytes; at most %d are allowed", len(by), mostBy)}
	case why == "":
		err = &zamok.ConfigError{Field: "BreakConfig.Why", Err: errors.New("it is empty; say why, for the holder and for those who ask later")}
	case len(why) > mostWhy:
		err = &zamok.ConfigError{Field: "BreakConfig.Why", Err: fmt.Errorf("%d bytes; at most %d are allowed", len(why), mostWhy)}
	}
	return by, why, err
}

// printable makes one line of it, which is safe to print.
func printable(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

func defaultBy() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	by := printable(name + "@" + host)
	return strings.ToValidUTF8(by[:min(len(by), mostBy)], "")
}
