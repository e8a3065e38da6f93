package inspect

import (
	"context"
	"fmt"
	"strconv"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
	"github.com/zamok-go/zamok/internal/keys"
	"github.com/zamok-go/zamok/internal/lua"
	"github.com/zamok-go/zamok/internal/proc"
	"github.com/zamok-go/zamok/internal/token"
)

// breaking is a lease that is being broken.
type breaking struct {
	in     *Inspector
	lock   *Lock
	holder Holder
	set    *keys.Set
	note   string
	now    bool
	broken Broken
}

// eval runs one of the scripts of a break.
func (x *breaking) eval(ctx context.Context, call driver.Call) (any, error) {
	call.Limit = limit
	reply, err := x.in.d.Eval(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("%w (it is not known whether it was broken: break it again)", failed(x.lock.Kind, x.lock.Name, because(ctx, err)))
	}
	return reply, nil
}

// grant is eval for a call that may give to another what is taken away.
func (x *breaking) grant(ctx context.Context, call driver.Call) (any, error) {
	if x.now {
		var err error
		if call, err = x.in.deciding(ctx, call); err != nil {
			return nil, err
		}
	}
	return x.eval(ctx, call)
}

// inbox is where the holder listens, if it is a client of ours.
func (x *breaking) inbox() string {
	if x.holder.Client == "" || x.holder.Resting {
		return ""
	}
	return keys.Inbox(x.in.prefix, x.holder.Client)
}

// all breaks the lease of one who has the lock alone. It is named by what only it can
// have: its token, which is used once, or all that a foreign program wrote.
func (x *breaking) all(ctx context.Context) error {
	holder, how := x.holder.Token, "ask"
	if x.holder.Foreign && len(x.lock.value) > len(holder) {
		holder = x.lock.value
	}
	if x.now {
		how = "now"
	}
	call := driver.Call{Script: lua.Break, Keys: x.set.Broken(), Args: []string{holder, how, x.note, x.inbox()}}
	reply, err := x.grant(ctx, call)
	if err != nil {
		return err
	}
	return x.parse(reply)
}

// one breaks the lease of one of several. First it is asked, in any case, so that it
// is told why; then its share is given up in its name.
func (x *breaking) one(ctx context.Context) error {
	if x.holder.Foreign && !x.now {
		return fmt.Errorf("%w: %v has a permit of %q; nothing was broken", ErrDeaf, x.holder.Holder, x.lock.Name)
	}
	members := x.set.Readers()
	if x.lock.Kind == KindSemaphore {
		members = x.set.Lock
	}
	reply, err := x.eval(ctx, driver.Call{
		Script: lua.Mark, Keys: []string{members, x.set.Marks()}, Args: []string{x.holder.Token, x.note, x.inbox(), x.set.Lock},
	})
	if err != nil {
		return err
	}
	if err := x.parse(reply); err != nil {
		return x.before(ctx, err)
	}
	if !x.now {
		return nil
	}
	x.broken.Asked, x.broken.Left = false, 0
	release := driver.Call{Script: lua.Release, Keys: x.set.Main, Args: []string{x.holder.Token, "", "0"}}
	if x.lock.Kind == KindSemaphore {
		// With fewer permits than there are, fewer who wait are told at once.
		release = driver.Call{Script: lua.SemRelease, Keys: x.set.Limit(), Args: []string{x.holder.Token, "", strconv.Itoa(max(1, x.lock.Permits))}}
	}
	if reply, err = x.grant(ctx, release); err != nil {
		return err
	}
	status, _, value, ok := readBroken(reply)
	if !ok {
		return x.strange(reply)
	}
	if status == "handed" {
		h, fence := token.ParseValue(value)
		x.broken.Next, x.broken.NextFence = zamok.Holder(h), fence
	}
	return nil // also when the holder was faster
}

// before says of a lease that is over whether it was taken before, and else why it
// cannot be broken.
func (x *breaking) before(ctx context.Context, changed error) error {
	if !x.now {
		return changed
	}
	reply, err := x.eval(ctx, driver.Call{Script: lua.Fate, Keys: x.set.Fate(), Args: []string{x.holder.Token}})
	if err != nil {
		return err
	}
	r := fields{list: asList(reply)}
	r.text() // the slot's last fence
	why := brokenBy(r.text())
	switch {
	case r.bad:
		return x.strange(reply)
	case why == nil:
		return changed
	}
	x.broken.By, x.broken.Why = why.By, why.Why
	return nil
}

// readBroken reads the fields of a reply that a break needs.
func readBroken(reply any) (status string, pttl int64, value string, ok bool) {
	r := fields{list: asList(reply)}
	status, _, pttl = r.text(), r.text(), r.num()
	r.num()
	r.num()
	r.num()
	value = r.text()
	return status, pttl, value, !r.bad
}

func (x *breaking) strange(reply any) error {
	return failed(x.lock.Kind, x.lock.Name, fmt.Errorf("the server's reply is not one of the script's: %.200q", reply))
}

// parse reads the reply of the scripts break and mark.
func (x *breaking) parse(reply any) error {
	status, pttl, value, ok := readBroken(reply)
	if !ok {
		return x.strange(reply)
	}
	b := &x.broken
	h, fence := token.ParseValue(value)
	switch status {
	case "asked":
		b.Asked, b.Left = true, millis(pttl)
		if why := brokenBy(value); why != nil {
			b.By, b.Why = why.By, why.Why
		}
	case "taken", "handed":
		b.Next, b.NextFence = zamok.Holder(h), fence
	case "deaf":
		return fmt.Errorf("%w: %v has lock %q; nothing was broken", ErrDeaf, zamok.Holder(h), b.Name)
	default: // absent, other
		h.Foreign = h.Foreign || value == "" && status == "other"
		return &ChangedError{Kind: x.lock.Kind, Name: b.Name, Now: zamok.Holder(h), Fence: fence}
	}
	return nil
}

// audit puts the break on the list of events, also when ctx ends meanwhile.
func (x *breaking) audit(ctx context.Context, by, why string) error {
	b, h := &x.broken, &x.holder
	e := proc.Event{
		Kind: proc.Broken, Name: proc.Bytes(b.Name), Key: proc.Bytes(b.Key), Token: h.Token, Fence: h.Fence,
		Service: h.Service, HeldMS: h.Since.Milliseconds(), By: by, Now: !b.Asked, Why: why, Next: b.Next.Token,
	}
	_, err := x.in.d.Eval(context.WithoutCancel(ctx), driver.Call{
		Script: lua.Note,
		Keys:   []string{keys.Events(x.in.prefix)},
		Args:   []string{strconv.Itoa(proc.EventsKept), strconv.FormatInt(proc.EventsTTL.Milliseconds(), 10), e.Text()},
		Limit:  limit,
	})
	if err != nil {
		return fmt.Errorf("inspect: the break of %q is not on the list of events: %w", x.lock.Title(), err)
	}
	return nil
}
