// Package scene has the scenarios of the race, and how each is measured. A scenario is
// played in a process of its own, once for each repetition, on a server of its own, so
// that nothing of another is in its memory or on its server.
//
// Where lockers can take turns in short blocks, all of them are in that one process, and
// a noisy moment is as noisy for each. Where one would disturb the next, as a crowd of
// waiters does, each has its process, and they follow each other within a repetition.
package scene

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zamok-go/zamok/driver/drivertest"
	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/fault/deploy"
)

// Scenario is one thing that is measured.
type Scenario struct {
	Name  string
	About string // what is done, in one sentence

	Among    func(k locker.Kind) bool // who takes part
	Together bool                     // in one process
	Xs       []int                    // what it is played with: waiters, ms, processes
	X        string                   // what these are
	Reps     int
	Seconds  float64       // a process takes about so long
	Limit    time.Duration // and is ended after so long

	play func(ctx context.Context, e *Env) error
}

// Unit is one process: one repetition of a scenario, for one locker or for all.
type Unit struct {
	Scenario string
	Lockers  []string
	X        int
	Rep      int
	Quick    bool
}

// Sample is one figure of one repetition.
type Sample struct {
	Locker string
	Metric string
	X      int
	Value  float64
}

// Env is what a scenario has while it is played.
type Env struct {
	Unit
	Kinds   []locker.Kind
	host    *deploy.Host
	samples []Sample
}

// Play plays a unit and returns its figures.
func Play(ctx context.Context, u Unit, dir string, log io.Writer) (samples []Sample, err error) {
	s, err := Find(u.Scenario)
	if err != nil {
		return nil, err
	}
	e := &Env{Unit: u, host: deploy.NewHost(dir, log)}
	defer e.host.Close()
	if e.Kinds, err = locker.Find(u.Lockers); err != nil {
		return nil, err
	}
	var played error
	if err := e.host.Try(func() { played = s.play(ctx, e) }); err != nil {
		return nil, err
	}
	return e.samples, played
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("no scenario is named %q", name)
}

// add notes a figure.
func (e *Env) add(k locker.Kind, metric string, value float64) { e.addAt(k, metric, e.X, value) }

func (e *Env) addAt(k locker.Kind, metric string, x int, value float64) {
	e.samples = append(e.samples, Sample{Locker: k.Name, Metric: metric, X: x, Value: value})
}

// span is for how long something is measured: only for a moment when the program is
// tried and not the libraries.
func (e *Env) span(d time.Duration) time.Duration {
	if e.Quick {
		return min(d/20, 100*time.Millisecond)
	}
	return d
}

// count is how many there are of something, a fraction in a quick run.
func (e *Env) count(n int) int {
	if e.Quick {
		return max(1, n/20)
	}
	return n
}

func (e *Env) server(args ...string) *drivertest.Server {
	return drivertest.StartServer(e.host, append([]string{"--maxclients", "20000"}, args...)...)
}

// wait lets time pass: what is measured is what happens meanwhile.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func millis(d time.Duration) float64 { return micros(d) / 1000 }
