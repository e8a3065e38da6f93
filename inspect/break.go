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
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/internal/token"
)

const (
	mostBy  = 128
	mostWhy = 256
)

// BreakConfig says who breaks a lock, why, and how. The zero value of every field
// but Why is its default.
type BreakConfig struct {
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
	// has it, and when the holder was asked.
	Next      zamok.Holder
	NextFence int64

	// AuditErr is why the break could not be put on the list of events. The lock
	// is broken all the same.
	AuditErr error
}

var (
	// ErrChanged: another has the lock now, or nobody. From Break; always a
	// *ChangedError. Nothing was changed on the server.
	ErrChanged = errors.New("inspect: the lock has changed hands")

	// ErrDeaf: the holder is no client of zamok, or has left its lock at rest, so
	// nobody is there to be asked. From Break without BreakConfig.Now. Nothing was
	// changed on the server.
	ErrDeaf = errors.New("inspect: the holder cannot be asked")
)

// ChangedError says who has the lock that was to be broken.
// errors.Is(err, ErrChanged) holds.
type ChangedError struct {
	Name  string
	Now   zamok.Holder // empty when nobody has it
	Fence int64        // of Now; 0 for a foreign one
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("inspect: lock %q has changed hands: %v has it now; nothing was broken, look again", e.Name, e.Now)
}

// Is reports whether target is ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// Break ends the lease that l shows, and no other: when the lock has changed hands
// since, however often, it is left alone and the error is ErrChanged.
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
	by, why, err := cfg.checked()
	if err != nil {
		return Broken{}, err
	}
	if !l.Held { // also of one that Show did not return, without an error
		return Broken{}, &zamok.ConfigError{Field: "Lock", Err: fmt.Errorf("nobody holds %q", l.Name)}
	}
	set, err := i.set(l.Name, l.Key)
	if err != nil {
		return Broken{}, &zamok.ConfigError{Field: "Lock.Key", Err: err}
	}
	reply, err := i.d.Eval(ctx, i.breakCall(set, &l, token.Note(by, why), cfg.Now))
	if err != nil {
		return Broken{}, fmt.Errorf("%w (it is not known whether it was broken: break it again)", failed(l.Name, because(ctx, err)))
	}
	b := Broken{Name: l.Name, Key: set.Lock, Holder: l.Holder, Fence: l.Fence, By: by, Why: why}
	if err := b.parse(reply); err != nil {
		return Broken{}, err
	}
	// The list tells of each asking, and not only what the holder is told.
	b.AuditErr = i.audit(ctx, &l, &b, by, why)
	return b, nil
}

// checked returns who and why, in the form in which they are kept.
func (c *BreakConfig) checked() (by, why string, err error) {
	if c == nil {
		c = &BreakConfig{}
	}
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

// breakCall names the holder by what only it can have: its token, which is used
// once, or all that a foreign program wrote.
func (i *Inspector) breakCall(set *keys.Set, l *Lock, note string, now bool) driver.Call {
	holder, inbox, how := l.Holder.Token, "", "ask"
	if l.Holder.Foreign && len(l.value) > len(holder) {
		holder = l.value
	}
	if l.Holder.Client != "" && !l.Holder.Resting {
		inbox = keys.Inbox(i.prefix, l.Holder.Client)
	}
	if now {
		how = "now"
	}
	return driver.Call{Script: lua.Break, Keys: set.Broken(), Args: []string{holder, how, note, inbox}, Limit: limit}
}

// parse reads the reply of the break script.
func (b *Broken) parse(reply any) error {
	r := fields{list: asList(reply)}
	status, _, pttl := r.text(), r.text(), r.num()
	r.num()
	r.num()
	r.num()
	value := r.text()
	if r.bad {
		return fmt.Errorf("inspect: lock %q: the server's reply is not one of the script's: %.200q", b.Name, reply)
	}
	h, fence := token.ParseValue(value)
	switch status {
	case "asked":
		b.Asked, b.Left = true, millis(pttl)
		if _, by, why, ok := token.ParseBroken(value); ok {
			b.By, b.Why = by, why
		}
	case "taken", "handed":
		b.Next, b.NextFence = zamok.Holder(h), fence
	case "deaf":
		return fmt.Errorf("%w: %v has lock %q; nothing was broken", ErrDeaf, zamok.Holder(h), b.Name)
	default: // absent, other
		h.Foreign = h.Foreign || value == "" && status == "other"
		return &ChangedError{Name: b.Name, Now: zamok.Holder(h), Fence: fence}
	}
	return nil
}

// audit puts the break on the list of events, also when ctx ends meanwhile.
func (i *Inspector) audit(ctx context.Context, l *Lock, b *Broken, by, why string) error {
	e := proc.Event{
		Kind: proc.Broken, Name: proc.Bytes(l.Name), Key: proc.Bytes(b.Key), Token: l.Holder.Token, Fence: l.Fence,
		Service: l.Service, HeldMS: l.Since.Milliseconds(), By: by, Now: !b.Asked, Why: why, Next: b.Next.Token,
	}
	_, err := i.d.Eval(context.WithoutCancel(ctx), driver.Call{
		Script: lua.Note,
		Keys:   []string{keys.Events(i.prefix)},
		Args:   []string{strconv.Itoa(proc.EventsKept), strconv.FormatInt(proc.EventsTTL.Milliseconds(), 10), e.Text()},
		Limit:  limit,
	})
	if err != nil {
		return fmt.Errorf("inspect: the break of lock %q is not on the list of events: %w", l.Name, err)
	}
	return nil
}
