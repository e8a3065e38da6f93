package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/internal/keys"
)

// Why Tick did not run its function, to test for with errors.Is. All come as a
// *SkippedError, and nothing is remembered of such a call.
var (
	// ErrTaken: this nominal time has had its run, on this host or another, whether
	// that went well, failed or crashed; or a later one has had it. Where several
	// hosts have the same job, all but one get it.
	ErrTaken = errors.New("zamok: once: the nominal time has had its run")

	// ErrOverlap: the run of an earlier nominal time still goes on.
	ErrOverlap = errors.New("zamok: once: the run before goes on")

	// ErrAhead: by the server's clock the nominal time is too far ahead. This
	// host's clock is wrong.
	ErrAhead = errors.New("zamok: once: the nominal time is too far ahead")
)

const (
	defaultAhead = time.Minute
	maxAhead     = 24 * time.Hour

	// tickRetention is longer than the year between two runs of the rarest job.
	// There is one record a job, so it costs next to nothing.
	tickRetention = 400 * 24 * time.Hour
)

// JobConfig is how a job's ticks are run. The zero value of every field is its
// default.
type JobConfig struct {
	// TTL of the lease of a run, 100 ms to 24 h: for how long after a crash the
	// job's ticks are refused with ErrOverlap. Default: zamok.Config.TTL.
	TTL time.Duration

	// Ahead is how long before its nominal time a run may begin, by the server's
	// clock: as far as the clocks of the hosts may go ahead of it. One host with a
	// wrong clock would otherwise take the times to come away from the others. At
	// most 24 h. Default: 1 min.
	Ahead time.Duration

	// Grace is how long before the end of the lease the function's context ends, so
	// that what it does has time to stop. At most half of TTL. Default: that of
	// zamok.MutexConfig.Grace.
	Grace time.Duration

	// Reason is what zamok show says of a run. At most 256 bytes. Default: none.
	Reason string
}

// Job is something that is run at nominal times, on whichever of several hosts
// comes first. It is immutable and may be used from many goroutines.
type Job struct {
	name   string
	ahead  time.Duration
	turn   *zamok.Mutex // held for moments, to read and write the record
	run    *zamok.Mutex // held while the job runs
	record string       // key
	id     string       // what Run.ID is made of
}

// NewJob makes a job of that name, 1 to 506 bytes. It sends nothing. cfg may be
// nil. The error is a *zamok.ConfigError.
func NewJob(client *zamok.Client, name string, cfg *JobConfig) (*Job, error) {
	if client == nil {
		return nil, &zamok.ConfigError{Field: "client", Err: errNil}
	}
	if cfg == nil {
		cfg = &JobConfig{}
	}
	set, err := keys.ForName(client.Prefix(), "ticks/"+name)
	switch {
	case name == "":
		return nil, badField("name", "it is empty")
	case err != nil:
		return nil, &zamok.ConfigError{Field: "name", Err: err}
	case cfg.Ahead < 0 || cfg.Ahead > maxAhead:
		return nil, badField("once.JobConfig.Ahead", "%v; it must be 0 to %v", cfg.Ahead, maxAhead)
	}
	turn := &zamok.MutexConfig{TTL: cfg.TTL}
	run := &zamok.MutexConfig{TTL: cfg.TTL, Grace: cfg.Grace, Reason: cfg.Reason}
	if err := checkMutex(client, run); err != nil {
		return nil, err
	}
	j := &Job{name: name, ahead: cfg.Ahead, record: set.Once(), id: set.Lock}
	j.turn, j.run = client.Mutex("ticks/"+name, turn), client.Mutex("tick/"+name, run)
	if j.ahead == 0 {
		j.ahead = defaultAhead
	}
	return j, nil
}

// SkippedError says why Tick did not run its function. errors.Is holds for
// ErrTaken, ErrOverlap or ErrAhead.
type SkippedError struct {
	Job     string
	Nominal time.Time
	Reason  error         // ErrTaken, ErrOverlap or ErrAhead
	By      zamok.Holder  // of ErrTaken and ErrOverlap: who has or had the run
	Newest  time.Time     // of ErrTaken: the newest nominal time that has had a run
	Early   time.Duration // of ErrAhead: how far the nominal time is ahead
}

func (e *SkippedError) Error() string {
	text := fmt.Sprintf("zamok: tick %s of job %q: ", e.Nominal.Format(time.RFC3339), e.Job)
	switch {
	case errors.Is(e.Reason, ErrAhead):
		return text + fmt.Sprintf("it is %v ahead of the server's clock; set this host's clock", e.Early.Round(time.Millisecond))
	case errors.Is(e.Reason, ErrOverlap):
		return text + "an earlier run goes on, by " + e.By.String()
	case e.Newest.Equal(e.Nominal):
		return text + "it has had its run, by " + e.By.String()
	}
	return text + fmt.Sprintf("it is late, since %s has had its run, by %s", e.Newest.Format(time.RFC3339), e.By)
}

func (e *SkippedError) Unwrap() error { return e.Reason }

// Tick runs fn for the job's nominal time, unless that, or a later one, has had its
// run, an earlier run still goes on, or the time is too far ahead; then it returns a
// *SkippedError. It never waits for a run. So of all hosts that call it for one
// nominal time, at most one runs fn, however their clocks differ. A run that fails
// or crashes is not made good: the next nominal time comes.
//
// nominal is the time for which the run was planned, in whole seconds, which is the
// same on all hosts: 03:00:00, say. It is not time.Now(), which differs from host to
// host; a scheduler that tells only that it is time has time.Now().Round(period).
//
// fn must stop when its context ends: when ctx does, or when the lease is lost.
//
// The error is what fn returned, joined with a *zamok.LostError when the lease was
// lost while fn ran; a *SkippedError, a *zamok.ConfigError, or another error of
// zamok.Mutex.Lock or zamok.Lease.Run: fn did not run. With zamok.ErrUnknown among
// the latter this nominal time may be remembered as one that had its run.
func Tick(ctx context.Context, job *Job, nominal time.Time, fn func(ctx context.Context, run Run) error) (err error) {
	switch {
	case job == nil:
		return &zamok.ConfigError{Field: "job", Err: errNil}
	case fn == nil:
		return errNilFunction
	case nominal.IsZero() || nominal.Nanosecond() != 0:
		return badField("nominal time", "%v; it must be the time for which the run was planned, in whole seconds, and not time.Now()", nominal)
	}
	nominal = nominal.UTC()
	h, err := job.claim(ctx, nominal)
	if err != nil {
		return err
	}
	work, stop := h.work(ctx)
	defer func() {
		stop()
		if lost := h.leave(); errors.Is(lost, zamok.ErrLost) && !errors.Is(err, lost) {
			err = errors.Join(err, lost)
		}
	}()
	key := job.name + "@" + nominal.Format(time.RFC3339)
	return fn(work, Run{Key: key, ID: stableID(job.id + "@" + nominal.Format(time.RFC3339)), Attempt: 1, Fence: h.lease.Fence()})
}

// tick is what is remembered of a job: the newest nominal time that had a run.
type tick struct {
	Format int    `json:"v"`
	Newest int64  `json:"newest"` // s since 1970
	Token  string `json:"token"`  // of the run's lease
}

// claim takes the lock of the job's runs and writes that nominal has its run.
//
// There are two locks. That of the runs is held as long as a run lasts, and only who
// has a lock may read under it. A host that comes later must find out whether the run
// that goes on is that of its own nominal time (all is well) or of an earlier one (a
// run is left out), so the record has a lock of its own, held for moments.
//
// The lock comes before the record, so that a run that is refused leaves nothing. A
// crash between the two costs this nominal time its run, as one after both does.
func (j *Job) claim(ctx context.Context, nominal time.Time) (*hold, error) {
	turn, err := j.turn.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = turn.Release(context.Background()) }() // its TTL ends it too
	s := slip{turn, j.record}
	old, last, err := j.last(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("zamok: job %q did not run: %w", j.name, err)
	}
	// A fence is the server's clock at the grant, or a little more.
	if skipped := j.judge(nominal, time.UnixMicro(turn.Fence()), last); skipped != nil {
		return nil, skipped
	}
	h, err := take(ctx, j.run.TryLock)
	var held *zamok.HeldError
	switch {
	case errors.As(err, &held):
		return nil, &SkippedError{Job: j.name, Nominal: nominal, Reason: ErrOverlap, By: held.Holder}
	case err != nil:
		return nil, err
	}
	if err := j.write(ctx, s, old, nominal, h.lease.Token()); err != nil {
		_ = h.leave()
		return nil, fmt.Errorf("zamok: job %q did not run: %w", j.name, err)
	}
	return h, nil
}

// judge says why there is no run, from what is known without the lock of the runs;
// nil when there may be one.
func (j *Job) judge(nominal, now time.Time, last *tick) error {
	if early := nominal.Sub(now); early > j.ahead {
		return &SkippedError{Job: j.name, Nominal: nominal, Reason: ErrAhead, Early: early}
	}
	if last == nil {
		return nil
	}
	if newest := time.Unix(last.Newest, 0).UTC(); !nominal.After(newest) {
		return &SkippedError{Job: j.name, Nominal: nominal, Reason: ErrTaken, Newest: newest, By: holderOf(last.Token)}
	}
	return nil
}

// last reads the record; nothing when there is none.
func (j *Job) last(ctx context.Context, s slip) (text string, last *tick, err error) {
	text, err = s.read(ctx)
	if err != nil || text == "" {
		return "", nil, err
	}
	last = new(tick)
	if err := json.Unmarshal([]byte(text), last); err != nil || last.Format != format {
		return "", nil, unknownForm(text)
	}
	return text, last, nil
}

func (j *Job) write(ctx context.Context, s slip, old string, nominal time.Time, token string) error {
	b, err := json.Marshal(tick{Format: format, Newest: nominal.Unix(), Token: token})
	if err != nil {
		return err
	}
	was, err := s.swap(ctx, old, string(b), tickRetention)
	if err == nil && was != old && was != string(b) { // its own text: the first reply was lost
		return errChanges
	}
	return err
}
