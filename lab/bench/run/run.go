// Package run plays the scenarios of the race, keeps their figures and writes what people
// read of them.
package run

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/zamok-go/zamok/lab/bench/page"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

const usage = `usage: bench [flags]

It plays each scenario, each repetition in a process of its own, and writes the figures
into lab/bench/results, README.md and docs/performance.md.

`

// Main is the program. It returns 0 when all was played, whatever the verdicts; 1 when
// something failed; 2 when the call is wrong.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 2 {
		switch args[0] {
		case unitArg:
			return asUnit(args[1], stdin, stdout, stderr)
		case scene.WorkerArg:
			if err := scene.Worker(args[1], stdin, stdout); err != nil {
				fmt.Fprintln(stderr, "worker:", err)
				return 1
			}
			return 0
		}
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	only := flags.String("only", "", "play only the scenarios whose names match this, and keep what is known of the others")
	none := flags.Bool("none", false, "play nothing: write the tables and plots anew from what is kept")
	quick := flags.Bool("quick", false, "try whether everything can be played, in small: without verdicts, and nothing is written")
	root := flags.String("root", "..", "the repository")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	pattern, err := regexp.Compile(*only)
	if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench: -only:", err, flags.Args())
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r := &race{quick: *quick, root: *root, say: stderr}
	if !*none {
		err = r.play(ctx, pattern)
	}
	if err == nil && !*quick {
		err = r.write(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

func (r *race) file(names ...string) string {
	return filepath.Join(append([]string{r.root}, names...)...)
}

func (r *race) results() string { return r.file("lab", "bench", "results", "results.json") }

// write writes what people read, and prints the verdicts.
func (r *race) write(stdout io.Writer) error {
	d, err := result.Load(r.results())
	if err != nil {
		return err
	}
	if err := page.ReplaceIn(r.file("README.md"), page.Short(d)); err != nil {
		return err
	}
	if err := page.ReplaceIn(r.file("docs", "performance.md"), page.Full(d)); err != nil {
		return err
	}
	if err := page.Plots(d, filepath.Dir(r.results())); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s", page.Short(d), "\n"+page.Verdicts(d))
	return err
}

// asUnit is what a process of one repetition does: it plays, prints the figures and ends.
// It ends also when there is nothing more to read, as then who started it is gone.
func asUnit(arg string, stdin io.Reader, stdout, stderr io.Writer) int {
	var u scene.Unit
	err := json.Unmarshal([]byte(arg), &u)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	samples, err := scene.Play(ctx, u, os.TempDir(), stderr)
	if err == nil {
		err = json.NewEncoder(stdout).Encode(samples)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
