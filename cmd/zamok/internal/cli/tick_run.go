package cli

import (
	"context"
	"errors"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
	"github.com/zamok-go/zamok/once"
)

// runTick is zamok run --tick.
func (a *app) runTick(ctx context.Context, f *runFlags) error {
	return a.connected(ctx, &f.claim, func(s *session) error {
		job, err := once.NewJob(s.client, f.tick.job, &once.JobConfig{
			TTL: time.Duration(f.ttl), Grace: f.mutex().Grace, Reason: f.reason,
		})
		if err != nil {
			return err
		}
		ran := false
		var ended error
		s.told.begin()
		err = once.Tick(s.signals.waiting, job, f.tick.nominal, func(work context.Context, run once.Run) error {
			s.told.end(nil)
			ran = true
			ended = a.runTicked(s, f, zamok.LeaseFrom(work), run)
			return ended
		})
		if ran { // what else is in err, finish has said
			return ended
		}
		s.told.end(err)
		return a.skipped(f, err)
	})
}

// runTicked runs the command of a tick.
func (a *app) runTicked(s *session, f *runFlags, lease *zamok.Lease, run once.Run) error {
	if err := s.signals.handOver(); err != nil {
		return f.notObtained(err)
	}
	result := a.runUnder(s.signals.running, f, lease, s.told,
		"ZAMOK_TICK="+stamp(f.tick.nominal), "ZAMOK_ONCE_KEY="+run.Key, "ZAMOK_ONCE_ID="+run.ID)
	return f.finish(a, lease, result)
}

// skipped explains why there was no run.
func (a *app) skipped(f *runFlags, err error) error {
	known := &failure{err: strip(err)}
	switch {
	case errors.Is(err, once.ErrTaken):
		if f.tick.taken == 0 { // the usual case on all hosts but one
			return nil
		}
		known.code, known.hint = f.tick.taken, "this is how it should be: without --taken-exit-code it is no error"
	case errors.Is(err, once.ErrOverlap):
		known.code, known.silent = f.conflict, f.conflict == 0
		known.hint = "this tick is left out; `zamok show " + quoted(f.name) + "` tells more; -E 0 keeps silent about it"
	case errors.Is(err, once.ErrAhead):
		known.code, known.hint = exit.Config, "by the server's clock a run may begin at most 1m before its time: is the time of --tick right?"
	case errors.Is(err, zamok.ErrUnknown):
		known.code, known.hint = exit.Unavailable, "the command did not run; this tick may be remembered as one that had its run"
	default:
		return f.notObtained(err)
	}
	return known
}
