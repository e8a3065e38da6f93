package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// unitArg is the first argument of a process of one repetition. The second is its Unit.
const unitArg = "unit"

// race is one call of the program.
type race struct {
	quick bool
	root  string
	say   io.Writer

	// What is left is told by what the scenarios say they take, in units of what they
	// took until now.
	done, all       int
	expected, taken float64 // seconds
	total           float64
}

// units lists the processes of a scenario. The lockers follow each other within each
// repetition, and each repetition begins with another.
func (r *race) units(s scene.Scenario) []scene.Unit {
	xs, reps := s.Xs, s.Reps
	if len(xs) == 0 {
		xs = []int{0}
	}
	if r.quick {
		reps, xs = 1, xs[len(xs)/2:len(xs)/2+1]
	}
	var all []scene.Unit
	// Repetitions are the outer loop: what is compared is played within minutes, and the
	// machine's good and bad hours go to all.
	for rep := 1; rep <= reps; rep++ {
		for _, x := range xs {
			var names []string
			for _, k := range locker.All() {
				if s.Plays(k, x) {
					names = append(names, k.Name)
				}
			}
			if s.Together {
				all = append(all, scene.Unit{Scenario: s.Name, Lockers: names, X: x, Rep: rep, Quick: r.quick})
				continue
			}
			for i := range names {
				name := names[(i+rep)%len(names)]
				all = append(all, scene.Unit{Scenario: s.Name, Lockers: []string{name}, X: x, Rep: rep, Quick: r.quick})
			}
		}
	}
	return all
}

// play plays what matches, and saves the figures of each scenario when it has ended.
func (r *race) play(ctx context.Context, only *regexp.Regexp) error {
	var chosen []scene.Scenario
	for _, s := range scene.All() {
		if only.MatchString(s.Name) {
			chosen = append(chosen, s)
			n := len(r.units(s))
			r.all += n
			r.total += float64(n) * s.Seconds
		}
	}
	if len(chosen) == 0 {
		return errors.New("no scenario has such a name")
	}
	var failed []string
	about := r.about(ctx) // once: what is saved changes the work tree
	for _, s := range chosen {
		about.Load = load()
		d := &result.Data{Runs: map[string]result.About{s.Name: about}}
		for _, u := range r.units(s) {
			r.one(ctx, s, u, d)
			if ctx.Err() != nil {
				return errors.New("interrupted; what was played before this scenario is kept")
			}
		}
		if len(d.Failures) > 0 {
			failed = append(failed, s.Name)
		}
		if r.quick {
			continue
		}
		kept, err := result.Load(r.results())
		if err != nil {
			return err
		}
		kept.Merge(d)
		if err := os.MkdirAll(filepath.Dir(r.results()), 0o755); err != nil {
			return err
		}
		if err := kept.Save(r.results()); err != nil {
			return err
		}
	}
	if len(failed) > 0 && r.quick { // otherwise the tables tell
		return fmt.Errorf("failures in %s", strings.Join(failed, ", "))
	}
	return nil
}

// one plays a unit, notes what came of it and says how far the race is.
func (r *race) one(ctx context.Context, s scene.Scenario, u scene.Unit, d *result.Data) {
	start := time.Now()
	samples, err := r.process(ctx, u, s.Limit)
	took := time.Since(start).Seconds()
	if ctx.Err() != nil {
		return
	}
	r.done++
	r.expected, r.taken = r.expected+s.Seconds, r.taken+took
	who := "all"
	if !s.Together {
		who = u.Lockers[0]
	}
	if u.X > 0 {
		who += fmt.Sprintf(", %d %s", u.X, s.X)
	}
	said := fmt.Sprintf("%.1f s", took)
	if err != nil {
		said = err.Error()
		d.Failures = append(d.Failures, result.Failure{Scenario: s.Name, Locker: strings.Join(u.Lockers, ", "), X: u.X, Rep: u.Rep, Error: said})
	}
	d.Add(s.Name, u.Rep, samples)
	left := (r.total - r.expected) * r.taken / r.expected
	fmt.Fprintf(r.say, "%3d/%d  %-10s %-44s rep %d: %s; %s left\n", r.done, r.all, s.Name, who, u.Rep, said, time.Duration(left*float64(time.Second)).Round(time.Second))
}

// process runs a process to its end, or kills it after the limit.
func (r *race) process(ctx context.Context, u scene.Unit, limit time.Duration) ([]scene.Sample, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, unitArg, string(arg))
	in, err := cmd.StdinPipe() // which ends with this process, so that one ends too
	if err != nil {
		return nil, err
	}
	defer in.Close()
	dir, err := os.MkdirTemp("", "zamok-bench-") // of its server; it may be killed and leave it
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it stands
	cmd.WaitDelay = 2 * time.Second                                          // then it is killed
	err = cmd.Run()
	if err != nil && ctx.Err() != context.Canceled {
		r.keep(u, said.Bytes())
	}
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		return nil, fmt.Errorf("not done within %v", limit)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%w: %.300s", err, lines[len(lines)-1])
	}
	var samples []scene.Sample
	return samples, json.Unmarshal(out.Bytes(), &samples)
}

// keep leaves what a process that failed said, for whoever wants to know.
func (r *race) keep(u scene.Unit, said []byte) {
	f, err := os.CreateTemp("", "zamok-bench-"+u.Scenario+"-*.stderr")
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Write(said); err == nil {
		fmt.Fprintf(r.say, "what it said: %s\n", f.Name())
	}
}
