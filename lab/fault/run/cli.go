package run

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/lab/fault/traffic"
)

const usage = `usage: fault [flags]

Without -deployment it plays the selection once, or again and again for the time of
-soak. A campaign that fails keeps its folder and says what plays it again.

`

// Main is the program. It returns 0 when all was as promised, 1 when it was not, and 2
// when it could not be tried.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == workerArg {
		return traffic.Main(stdin, stdout, stderr)
	}
	flags := flag.NewFlagSet("fault", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	var p Plan
	var list, dir, doc, check, result string
	var expect, seeded bool
	var soak time.Duration
	var atOnce int
	flags.StringVar(&p.Deployment, "deployment", "", "play one campaign on this one")
	flags.StringVar(&list, "faults", "kept", "with -deployment: which, with commas between")
	flags.BoolVar(&expect, "expect", false, "with -deployment: two holders at a time must be seen")
	flags.DurationVar(&p.TTL, "ttl", 0, "with -deployment: of leases, for longer than the campaign, and nobody who holds dies; 0: the deployment's")
	flags.Uint64Var(&p.Seed, "seed", 1+uint64(rand.Uint32N(1_000_000)), "what all chance follows from; of several campaigns the first")
	flags.DurationVar(&p.For, "for", 6*time.Second, "how long faults are done in each campaign")
	flags.IntVar(&p.Workers, "workers", 4, "how many processes use the locks")
	flags.DurationVar(&soak, "soak", 0, "go on for so long")
	flags.IntVar(&atOnce, "at-once", 1, "without -deployment: how many campaigns at a time")
	flags.BoolVar(&seeded, "broken", false, "play the locks that are broken on purpose, and nothing else")
	flags.StringVar(&dir, "dir", os.TempDir(), "where campaigns have their folders")
	flags.StringVar(&check, "check", "", "with -deployment: play nothing, and check the history in this folder")
	flags.StringVar(&result, "result", "", "with -deployment: write what came of it into this file")
	flags.StringVar(&doc, "report", "", "write the figures into this document")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	s := &series{dir: dir, say: stderr, workers: p.Workers, atOnce: max(1, atOnce), NotHere: make(map[string]error)}
	about := surroundings()
	about.Command = fmt.Sprintf("%s -seed %d -for %v -workers %d -at-once %d", program, p.Seed, p.For, p.Workers, s.atOnce)
	fmt.Fprintf(stderr, "seed %d\n", p.Seed)
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case p.Deployment != "":
		p.Faults = strings.Split(list, ",")
		if expect {
			p.Expect = overlap
		}
		about.Command = p.Command()
		if check == "" {
			err = s.play(ctx, p)
			break
		}
		var res *Result
		if res, err = Check(p, check, stderr); err == nil {
			s.Results = append(s.Results, res)
			s.tell(res)
		}
	case seeded:
		about.Command = program + " -broken"
		err = s.seeded(ctx)
	case soak > 0:
		about.Command += fmt.Sprint(" -soak ", soak)
		err = s.soak(ctx, p.Seed, p.For, soak)
	default:
		err = s.selection(ctx, p.Seed, p.For)
	}
	if err == nil && result != "" && len(s.Results) > 0 {
		err = s.Results[0].write(result)
	}
	report := s.report(about)
	fmt.Fprint(stdout, report)
	if err == nil && doc != "" {
		err = into(doc, report)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	case !s.ok():
		return 1
	}
	return 0
}

// silent has no log: go-redis prints that a primary is new.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
