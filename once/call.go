package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// call is one call of Do, Resolve or Forget, under the lock of its key.
type call struct {
	place
	o    *Once
	key  string
	hold *hold
	slip slip

	mine record // what this call wrote
	text string // mine, as it stands on the server
}

// replay is a record that a call found or left.
type replay struct {
	record
	key string
	id  string
}

func (c *call) replay(r *record) *replay { return &replay{record: *r, key: c.key, id: c.id} }

// enter takes the lock of the key.
func (o *Once) enter(ctx context.Context, key string) (*call, error) {
	p, err := o.place(key)
	if err != nil {
		return nil, err
	}
	h, err := take(ctx, o.client.Mutex(p.lock, o.mutexConfig()).Lock)
	if err != nil {
		return nil, err
	}
	return &call{place: p, o: o, key: key, hold: h, slip: slip{h.lease, p.record}}, nil
}

// leave gives the lock back. What that comes to is of no interest: by now the end
// of the call is stored, or the caller is told that it is not.
func (c *call) leave() { _ = c.hold.leave() }

// do is Do without types. ran says that fn was called.
func (o *Once) do(ctx context.Context, key string, fn func(context.Context, Run) (json.RawMessage, error)) (rec *replay, ran bool, err error) {
	c, err := o.enter(ctx, key)
	if err != nil {
		return nil, false, err
	}
	defer c.leave()
	// Twice as long as a run may last: so a run that crashed is remembered for the
	// retention time at least.
	old, err := c.advance(ctx, c.begin, 2*o.cfg.Retention)
	switch {
	case err != nil:
		c.undo(ctx)
		return nil, false, fmt.Errorf("zamok: once %q: it did not run: %w", key, err)
	case old != nil:
		rec, err := c.answer(old)
		return rec, false, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, false, err
	}
	return nil, true, c.run(ctx, fn)
}

// resolve is Resolve without types. old says that the record was there before.
func (o *Once) resolve(ctx context.Context, key string, value json.RawMessage) (rec *replay, old bool, err error) {
	c, err := o.enter(ctx, key)
	if err != nil {
		return nil, false, err
	}
	defer c.leave()
	found, err := c.advance(ctx, func(old *record) *record {
		if old != nil && (old.State == done || c.differs(old)) {
			return nil
		}
		r := c.next(old, done)
		r.Value, r.Attempt = value, max(r.Attempt-1, 1)
		return r
	}, o.cfg.Retention)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("zamok: once %q: not resolved: %w", key, err)
	case found != nil:
		rec, err := c.answer(found)
		return rec, true, err
	}
	return c.replay(&c.mine), false, nil
}

// Forget removes what is remembered of the key, whatever it is: the next call runs
// it, although it may have been done. It waits for a run that goes on. A key of
// which nothing is known is no error. Errors are those of Resolve.
func (o *Once) Forget(ctx context.Context, key string) error {
	if o == nil {
		return errNilOnce
	}
	c, err := o.enter(ctx, key)
	if err != nil {
		return err
	}
	defer c.leave()
	text, err := c.slip.read(ctx)
	if err == nil && text != "" {
		_, err = c.slip.swap(ctx, text, "", 0)
	}
	if err != nil {
		return fmt.Errorf("zamok: once %q: not forgotten: %w", key, err)
	}
	return nil
}

// advance replaces the record by the one that next makes of it, or returns it when
// next makes none.
//
// A reply may get lost. Then it is asked again, and finds its own text, in which
// the lease's token stands, which no other call has: so the text is written, and
// what it says has not been acted upon.
func (c *call) advance(ctx context.Context, next func(old *record) *record, ttl time.Duration) (*record, error) {
	// That nothing is remembered is a guess that saves a request when it is right.
	// Only this lease writes, so the second try is the last, unless data is lost.
	found := ""
	for range 5 {
		old, err := parse(found)
		if err != nil {
			return nil, err
		}
		r := next(old)
		if r == nil {
			return old, nil
		}
		text, err := r.text()
		if err != nil {
			return nil, err
		}
		c.mine, c.text = *r, text
		was, err := c.slip.swap(ctx, found, text, ttl)
		if err != nil || was == found || was == text {
			return nil, err
		}
		c.text = ""
		found = was
	}
	return nil, errChanges
}

var errChanges = errors.New("what is remembered changes under the lock: another program writes it")

// next is the record of this call, after old.
func (c *call) next(old *record, state string) *record {
	lease := c.hold.lease
	r := &record{Format: format, State: state, Policy: c.o.cfg.Policy, Attempt: 1, Fence: lease.Fence(), Token: lease.Token(), Input: c.o.input}
	if old != nil {
		r.Attempt = old.Attempt + 1
		if r.Input == "" {
			r.Input = old.Input
		}
	}
	return r
}

func (c *call) differs(old *record) bool {
	return old.Input != "" && c.o.input != "" && old.Input != c.o.input
}

// begin makes the record of a run; nil when there may be none.
func (c *call) begin(old *record) *record {
	if old != nil && (c.differs(old) || !c.may(old)) {
		return nil
	}
	return c.next(old, running)
}

// may says whether a run may follow what is remembered. This call has the lock, so
// a run that is remembered as running is over.
func (c *call) may(old *record) bool {
	switch old.State {
	case again:
		return true
	case running:
		return c.o.cfg.Policy == Retry && old.Policy == Retry
	}
	return false
}

// answer is what a record that is not followed by a run means to the caller.
func (c *call) answer(old *record) (*replay, error) {
	switch {
	case c.differs(old):
		return nil, &MismatchError{Key: c.key, ID: c.id}
	case old.State == done:
		return c.replay(old), nil
	case old.State == failed:
		return nil, &FailedError{Key: c.key, ID: c.id, Text: old.Error, By: holderOf(old.Token), Began: old.began(), Attempt: old.Attempt}
	}
	return nil, &InterruptedError{Key: c.key, ID: c.id, By: holderOf(old.Token), Began: old.began(), Attempt: old.Attempt}
}

// ready looks once more before fn is called, which cannot be taken back.
func (c *call) ready(ctx context.Context) error {
	err := c.hold.lease.Err()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		c.undo(ctx)
	}
	if err != nil {
		return fmt.Errorf("zamok: once %q: it did not run: %w", c.key, err)
	}
	return nil
}

// undo takes back that a run began, since it will not. It is tried for a second:
// if it fails, GiveUp's next caller is told of a run that did not tell its end. It
// replaces the call's own text alone: when the reply to that was lost, what stands
// there may as well be an outcome.
func (c *call) undo(ctx context.Context) {
	back := c.mine
	back.State = again
	back.Attempt--
	text, err := back.text()
	if c.text == "" || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = c.slip.swap(ctx, c.text, text, c.o.cfg.Retention)
}

var errPanicked = errors.New("its function panicked")

// run calls fn, and stores what it comes to.
func (c *call) run(ctx context.Context, fn func(context.Context, Run) (json.RawMessage, error)) error {
	work, stop := c.hold.work(ctx)
	defer stop()
	returned := false
	defer func() {
		if !returned { // it panicked or ended its goroutine, which goes on now
			_ = c.finish(ctx, nil, errPanicked)
		}
	}()
	value, err := fn(work, Run{Key: c.key, ID: c.id, Attempt: c.mine.Attempt, Fence: c.mine.Fence})
	returned = true
	if e := c.finish(ctx, value, err); e != nil {
		return errors.Join(err, &NotStoredError{Key: c.key, Err: e})
	}
	return err
}

// maxText bounds the text of a failure that is stored.
const maxText = 1024

// finish stores the end of the run.
func (c *call) finish(ctx context.Context, value json.RawMessage, failure error) error {
	end := c.mine
	end.State, end.Value = c.o.verdict(failure), value
	if failure != nil {
		text := failure.Error()
		end.Error = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	}
	return c.replace(context.WithoutCancel(ctx), &end)
}

var errSuperseded = errors.New("the end of another run is remembered")

// replace stores the end of this run in place of its begin. The script runs only
// under the run's lease, so nobody can have begun after it. Where the server lost
// its last writes, or evicted the record, an older begin stands there or nothing,
// and the run's own end is newer than that.
func (c *call) replace(ctx context.Context, end *record) error {
	text, err := end.text()
	if err != nil {
		return err
	}
	expected := c.text
	for range 5 {
		was, err := c.slip.swap(ctx, expected, text, c.o.cfg.Retention)
		if err != nil || was == expected || was == text {
			return err
		}
		old, err := parse(was)
		if err != nil {
			return err
		}
		if old != nil && (old.Fence >= c.mine.Fence || old.State == done || old.State == failed) {
			return errSuperseded
		}
		expected = was
	}
	return errChanges
}
