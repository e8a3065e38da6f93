package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
)

// Run is what a function is told of the run that it is.
type Run struct {
	Key string

	// ID is the same for every run of the key under this prefix, in the form of a
	// UUID. Give it to downstream services as an idempotency key. It outlives the
	// retention time, Forget and the server's data, so to have a thing done anew use
	// a new key.
	ID string

	// Attempt counts the runs that are remembered, from 1. More than 1: an earlier
	// one failed, or did not tell its end.
	Attempt int

	// Fence is the fence of the run's lease: larger for every later run. See
	// zamok.Lease.Fence. The lease itself is zamok.LeaseFrom(ctx).
	Fence int64
}

// Outcome is what came of a key.
type Outcome[T any] struct {
	Value    T
	Replayed bool   // it is an earlier run's; nothing ran
	ID       string // Run.ID
	Attempt  int    // which run it was, from 1

	// By is who ran it, or who said by Resolve that it was done, and Began when that
	// began, by the server's clock.
	By    zamok.Holder
	Began time.Time
}

// Do returns the outcome of the key: the stored one, or, when none is, that of fn,
// which it runs and stores. Calls of a key run one at a time; who waits gets the
// outcome when it is there. T must be what encoding/json takes and gives back; keep
// it small, as it stays in the server's memory for Config.Retention.
//
// fn must stop when its context ends. That is when ctx does, or when the lease is
// lost (context.Cause tells). Until fn returns, the lease is renewed, and what fn
// comes to is stored even if ctx has ended meanwhile. Let Do return before the
// Client is closed.
//
// A nil error means that the outcome is stored, and Value is it. Otherwise:
//
//   - what fn returned, if it failed here. Whether that is stored, and replayed as
//     a *FailedError, the policy decides, or Again or Final;
//   - *FailedError, *InterruptedError, *MismatchError: fn did not run;
//   - *NotStoredError: fn ran to its end; joined with what fn returned;
//   - the errors of zamok.Mutex.Lock, among them *zamok.HeldError when Config.Wait
//     or ctx ended while another run went on, and *zamok.ConfigError: fn did not run;
//   - others, among them zamok.ErrUnknown without ErrNotStored: fn did not run. Under
//     GiveUp the key may then be remembered as begun, and a later call gets an
//     *InterruptedError: Forget helps.
//
// A fn that panics has failed.
func Do[T any](ctx context.Context, o *Once, key string, fn func(ctx context.Context, run Run) (T, error)) (Outcome[T], error) {
	var out Outcome[T]
	if o == nil {
		return out, errNilOnce
	}
	if fn == nil {
		return out, errNilFunction
	}
	var unfit *json.UnsupportedTypeError
	if _, err := json.Marshal(out.Value); errors.As(err, &unfit) { // better now than when it is done
		return out, badField("type of the outcome", "%w", err)
	}
	rec, ran, err := o.do(ctx, key, func(ctx context.Context, run Run) (json.RawMessage, error) {
		out.of(run.ID, &record{Attempt: run.Attempt, Fence: run.Fence, Token: zamok.LeaseFrom(ctx).Token()})
		var err error
		if out.Value, err = fn(ctx, run); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(out.Value)
		if err != nil {
			err = Final(fmt.Errorf("zamok: once %q: it is done, and its outcome cannot be stored: %w", key, err))
		}
		return raw, err
	})
	if ran || err != nil {
		return out, err
	}
	return replayed[T](rec)
}

// of takes from a record what is known of its run.
func (out *Outcome[T]) of(id string, r *record) {
	out.ID, out.Attempt, out.By, out.Began = id, r.Attempt, holderOf(r.Token), r.began()
}

func replayed[T any](rec *replay) (Outcome[T], error) {
	out := Outcome[T]{Replayed: true}
	out.of(rec.id, &rec.record)
	if err := json.Unmarshal(rec.Value, &out.Value); err != nil {
		return out, fmt.Errorf("zamok: once %q: it is done, and the stored outcome is no %T: %w", rec.key, out.Value, err)
	}
	return out, nil
}

// Resolve stores value as the outcome of the key, if none is stored, and returns
// the one that is. It is for whoever found out that the thing was done: after an
// *InterruptedError, a *NotStoredError, or a failure that was none. It waits for a
// run that goes on. The error is a *MismatchError, or what Do returns when its
// function did not run; with zamok.ErrUnknown the outcome may be stored.
func Resolve[T any](ctx context.Context, o *Once, key string, value T) (Outcome[T], error) {
	out := Outcome[T]{Value: value}
	if o == nil {
		return out, errNilOnce
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return out, badField("outcome", "%w", err)
	}
	rec, old, err := o.resolve(ctx, key, raw)
	switch {
	case err != nil:
		return out, err
	case old:
		return replayed[T](rec)
	}
	out.of(rec.id, &rec.record)
	return out, nil
}
