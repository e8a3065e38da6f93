package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zamok-go/zamok/cmd/zamok/internal/exit"
)

// tickFlags are those of zamok run that make it run once a nominal time.
type tickFlags struct {
	at    string // a time, or ofClock
	every duration
	taken int // exit code when the tick has had its run

	given   bool
	job     string
	nominal time.Time
}

// ofClock stands for --tick without a time.
const ofClock = "clock"

func (t *tickFlags) add(flags *pflag.FlagSet) {
	t.every = duration(time.Minute)
	flags.StringVar(&t.at, "tick", "", "for cron on many hosts: one run for each planned `TIME`, on one of them;\nwritten --tick=2026-01-31T03:00:00Z; without a time, this host's clock\nrounded to --every")
	flags.Var(&t.every, "every", "with --tick: the `TIME` to which the clock is rounded, 1s to 1h; of an hour\na whole part, and such that the job is planned at multiples of it")
	flags.IntVar(&t.taken, "taken-exit-code", exit.OK, "with --tick: exit code `N` when another had the run; 0 also keeps silent\nabout it")
	flags.Lookup("tick").NoOptDefVal = ofClock
}

// check finds the nominal time. now is what the host's clock says.
func (t *tickFlags) check(cmd *cobra.Command, f *runFlags, now time.Time) error {
	flags := cmd.Flags()
	t.given = flags.Changed("tick")
	switch {
	case !t.given && (flags.Changed("every") || flags.Changed("taken-exit-code")):
		return usage("write: zamok run --tick --every 5m NAME -- COMMAND", "--every and --taken-exit-code are of use with --tick alone")
	case !t.given:
		return nil
	case f.limited && f.wait > 0:
		return usage("leave out -w", "--tick does not wait: another host has the run, or the tick before still runs")
	case f.minHold > 0:
		return usage("leave out --hold-min: with --tick no clock that differs leads to a second run", "--tick and --hold-min were both given")
	case len(f.with) > 0:
		return usage("leave out --with, and have COMMAND be a zamok run of its own", "--tick takes one lock, and --with another")
	case f.shared || f.slots > 0:
		return usage("of a planned time there is one run: leave out -s and -N", "--tick is not for --shared, nor for --slots")
	case t.taken < 0 || t.taken > 255:
		return usage("write 0 to 255", "--taken-exit-code is %d", t.taken)
	}
	if err := checkName(f.server.prefix, "ticks/"+f.name); err != nil {
		return err // the longest of the names that come of it
	}
	t.job, f.name = f.name, "tick/"+f.name
	if t.at != ofClock {
		return t.planned(flags.Changed("every"))
	}
	return t.round(now)
}

func (t *tickFlags) planned(every bool) (err error) {
	const hint = "write for example --tick=2026-01-31T03:00:00Z, the time for which the run was planned, which is the same on all hosts"
	if t.nominal, err = time.Parse(time.RFC3339, t.at); err != nil {
		return usage(hint, "--tick is %q, which is no time of that form", t.at)
	}
	switch {
	case t.nominal.Nanosecond() != 0:
		return usage(hint, "--tick is %q; a planned time is in whole seconds", t.at)
	case every:
		return usage("leave out one", "--every rounds the clock, and --tick has a time of its own")
	}
	return nil
}

// round makes of the clock's time the planned one, which is the same on all hosts.
//
// A time that is more than a quarter of every away from a multiple is refused. So
// what two calls make of two times is the same if these are less than half of every
// apart, whatever the schedule: else a job that is planned in the middle between two
// multiples would be rounded up on one host and down on another, and run twice.
func (t *tickFlags) round(now time.Time) error {
	every := time.Duration(t.every)
	if every < time.Second || every > time.Hour || time.Hour%every != 0 || every%time.Second != 0 {
		return usage("60s, the default, suits every crontab; 5m allows for late starts, if the job is planned at whole 5 minutes", "--every is %v; it must be 1s to 1h, in whole seconds, and a whole part of an hour", every)
	}
	t.nominal = now.UTC().Round(every)
	off := now.Round(0).Sub(t.nominal) // of the wall clock, which is what cron goes by
	if off.Abs() <= every/4 {
		return nil
	}
	return &failure{
		code: exit.Config,
		err: fmt.Errorf("by this host's clock it is %s, %v from the nearest multiple of --every, %v; at most a quarter of it is allowed, so that all hosts mean the same time",
			now.UTC().Format("15:04:05Z"), off.Abs().Round(time.Millisecond), every),
		hint: "is the job planned at multiples of --every? if it started late, a larger --every allows for more; or give the planned time: --tick=TIME",
	}
}

// tooMany is what is said of several names before --.
func (t *tickFlags) tooMany(names []string) error {
	if _, err := time.Parse(time.RFC3339, names[0]); err == nil && t.at == ofClock {
		return usage("write --tick="+names[0], "%q is taken for the name, not the time of --tick", names[0])
	}
	return usage(runForm, "one name is expected before --, not %d: %q", len(names), names)
}
