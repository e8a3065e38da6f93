package scene

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/zamok-go/zamok/lab/bench/locker"
)

// WorkerArg is the first argument of a process that uses locks for a scenario. The second
// is its Job.
const WorkerArg = "worker"

// Job says what a worker has to do with.
type Job struct {
	Locker string
	Addr   string
	TTL    time.Duration
	Who    int
}

// goroutines of a worker.
const goroutines = 16

// Worker is such a process. It says "ready", and does what it reads: "wait" (for the
// lock, until it is killed), "names DURATION" and "share DURATION" (lock names of its
// own, or the one of all, for so long, and say how often). It ends when there is nothing
// more to read, so it does not outlive who started it.
func Worker(arg string, in io.Reader, out io.Writer) error {
	var job Job
	if err := json.Unmarshal([]byte(arg), &job); err != nil {
		return err
	}
	kinds, err := locker.Find([]string{job.Locker})
	if err != nil {
		return err
	}
	c, err := kinds[0].Open(job.Addr, locker.Options{TTL: job.TTL})
	if err != nil {
		return err
	}
	ctx := context.Background()
	own := &runner{kind: kinds[0]}
	for i := range goroutines {
		own.takes = append(own.takes, c.Of(fmt.Sprintf("own-%d-%d", job.Who, i)))
	}
	fmt.Fprintln(out, "ready")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		span, _ := time.ParseDuration(rest)
		n := 0.0
		switch what {
		case "wait":
			go func() { _, _ = c.Of("job")(ctx) }() // until the process ends
		case "names":
			_, cycles, e := own.block(ctx, span)
			n, err = float64(cycles), e
		case "share":
			n, err = share(ctx, c, "job", goroutines, span)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, n)
	}
	return nil // without Close: this process is at its end, and so is its server
}

// worker is such a process, seen from who started it.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (e *Env) worker(ctx context.Context, job Job) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self, WorkerArg, string(arg))}
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	return w, nil
}

// workers starts n of them and waits until they are ready. The function that it returns
// kills them.
func (e *Env) workers(ctx context.Context, n int, job Job) (all []*worker, kill func(), err error) {
	kill = func() {
		for _, w := range all {
			_ = w.cmd.Process.Kill()
		}
		for _, w := range all {
			_ = w.cmd.Wait()
		}
	}
	for i := range n {
		job.Who = i
		w, err := e.worker(ctx, job)
		if err != nil {
			kill()
			return nil, nil, err
		}
		all = append(all, w)
	}
	for _, w := range all {
		if _, err := w.out.ReadString('\n'); err != nil {
			kill()
			return nil, nil, fmt.Errorf("a worker is not ready: %w", err)
		}
	}
	return all, kill, nil
}

// tell has all of them do something, and returns what each of them says of it.
func tell(all []*worker, what string) ([]float64, error) {
	for _, w := range all {
		if _, err := fmt.Fprintln(w.in, what); err != nil {
			return nil, err
		}
	}
	said := make([]float64, len(all))
	for i, w := range all {
		if _, err := fmt.Fscanln(w.out, &said[i]); err != nil {
			return nil, fmt.Errorf("a worker did not answer %q: %w", what, err)
		}
	}
	return said, nil
}
